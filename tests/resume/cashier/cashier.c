// Cashier is the teller in C: it speaks lines of JSON, and its clock, random numbers and sleep are
// those of wasi-libc.
//
//   clang --target=wasm32-wasi -O2 -o cashier.wasm cashier.c
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *server;
static int sent;

// hear returns the next line of the host.
static char *hear(void) {
  fflush(stdout);
  char *line = NULL;
  size_t room = 0;
  if (getline(&line, &room, stdin) <= 0) exit(3);
  return line;
}

// value returns the text of a member's string, as it is spelled, or "".
static char *value(const char *json, const char *name) {
  char want[64];
  snprintf(want, sizeof want, "\"%s\":\"", name);
  const char *from = strstr(json, want);
  if (!from) return strdup("");
  from += strlen(want);
  const char *to = from;
  for (; *to && *to != '"'; to++) to += *to == '\\';
  return strndup(from, to - from);
}

// ask reports whether the answer came. Where it was lost the request is not made again: the server counts.
static bool ask(const char *path, const char *word) {
  unsigned char b[8];
  char nonce[17], at[32];
  if (getentropy(b, sizeof b)) exit(4);
  for (int i = 0; i < 8; i++) sprintf(nonce + 2 * i, "%02x", b[i]);
  printf("{\"type\":\"REQUEST\",\"id\":\"%s\",\"method\":\"GET\",\"url\":\"%s/%s?nonce=%s\",\"headers\":[[\"X-Word\",\"%s\"]]}\n",
         path, server, path, nonce, word);
  char *answer = hear();
  bool lost = strcmp(value(answer, "code"), "reply_lost") == 0;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", gmtime(&now.tv_sec));
  sent++;
  printf("{\"type\":\"RECORD\",\"stream\":\"items\",\"key\":\"%s\",\"emitted_at\":\"%s.%03ldZ\",\"data\":{\"id\":\"%s\",\"text\":\"%s\","
         "\"nonce\":\"%s\",\"at\":\"%s.%03ldZ\"}}\n",
         path, at, now.tv_nsec / 1000000, path, lost ? "lost" : value(answer, "body"), nonce, at, now.tv_nsec / 1000000);
  return !lost;
}

static char *question(const char *kind, const char *id, const char *field) {
  printf("{\"type\":\"INTERACTION\",\"request_id\":\"%s\",\"kind\":\"%s\",\"message\":\"Which?\",\"schema\":{\"type\":\"object\","
         "\"required\":[\"%s\"],\"properties\":{\"%s\":{\"type\":\"string\"}}}}\n",
         id, kind, field, field);
  return value(hear(), field);
}

int main(void) {
  server = value(hear(), "server");
  char path[32] = "login";
  for (int n = 1; !ask(path, "") && n < 100; n++) snprintf(path, sizeof path, "%d/login", n);
  ask("a/0", "");
  ask("season", question("clarification", "q1", "answer"));
  struct timespec d = {0, 2000000};
  nanosleep(&d, NULL);
  ask("b/0", "");
  ask("code", question("otp", "q2", "code"));
  ask("c/0", "");
  printf("{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":%d}\n", sent);
  return 0;
}
