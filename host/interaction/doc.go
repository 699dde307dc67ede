// Package interaction is the desk where the questions of runs meet the answers
// of their owner.
//
// A run asks through Desk.Ask and an owner answers through Desk.Answer, however
// the answer was brought. Between the two an answer is a box that only the asking
// run can open: the desk itself keeps no answer, and nothing of one is in
// the store, a log or an error.
//
// Trust: questions are a connector's words, already bounded by the protocol;
// answers are a stranger's until they passed the checks of §16.3.
package interaction
