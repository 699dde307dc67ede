// Package assistant gives assistants access to collected data by MCP. They are external programs, most of them language
// models. The package manages who they are and what each may see, and logs all their calls.
//
// Assistants are untrusted, and so are the records that they read: a text in one may tell an assistant what to ask for
// next. So nothing depends on the model. A token stands for a grant. Each call checks the grant again and sees the
// store through a view that omits what the grant does not name, by record and by field. SQL and search run on copies
// made through that view, in files of that assistant only. No tool answers a question, reveals a secret, or sends
// anything out of the host.
package assistant
