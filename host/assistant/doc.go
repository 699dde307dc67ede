// Package assistant is the door for assistants: programs of others, most of them language
// models, that read what was collected by MCP. It keeps who they are, what each may see,
// and every call that they made.
//
// An assistant is hostile, and so is every record that it reads: a text in one may tell it
// what to ask for next. So nothing here is left to the model. A token is a grant. Each call
// looks again whether it still holds, and sees the store through a window that leaves out
// what the grant does not name, record by record and field by field. SQL and search run over
// copies that were filled through that window, in files of this assistant alone. No tool
// answers a question, shows a secret, or sends anything out of the host.
package assistant
