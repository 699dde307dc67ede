// A connector in C that imports the host's functions: it collects the primes below 100.
//
//   clang --target=wasm32-wasi -O2 -I../../../docs/spec -o primes.wasm primes_abi.c
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sluice.h"

static uint8_t buffer[512];  // small, so that there are several frames
static char text[4096];

// check ends the program with what the host has to say about a call that failed.
static int64_t check(int64_t result) {
  if (result >= 0) return result;
  int32_t n = sluice_reply(text, sizeof text - 1);
  fprintf(stderr, "error %d: %.*s\n", (int)-result, (int)n, text);
  _Exit(1);
}

int main(void) {
  // START, in pieces: what is left of a reply stays pending.
  int64_t length = check(sluice_start(NULL, 0));
  int32_t n = 0;
  for (int32_t piece; n < (int32_t)sizeof text && (piece = sluice_reply(text + n, 16)) > 0; n += piece) continue;
  if (n != length || !strstr(text, "\"abi\":{\"major\":1,")) return 1;

  sluice_frame frame;
  sluice_frame_begin(&frame, buffer, sizeof buffer);
  int found = 0;
  for (int p = 2; p < 100; p++) {
    int d = 2;
    while (d * d <= p && p % d) d++;
    if (d * d <= p) continue;
    char key[8], data[64];
    int key_len = snprintf(key, sizeof key, "%d", p), data_len = snprintf(data, sizeof data, "{\"id\":\"%d\",\"value\":%d}", p, p);
    while (!sluice_frame_add(&frame, SLUICE_UPSERT, SLUICE_KEY_TEXT, 0, 0, key, key_len, data, data_len)) {
      check(sluice_emit(frame.bytes, frame.len));
      sluice_frame_begin(&frame, buffer, sizeof buffer);
    }
    found++;
  }
  check(sluice_emit(frame.bytes, frame.len));
  if (sluice_read(7, text, sizeof text) != -SLUICE_ENOENT) return 1;  // no such handle
  n = snprintf(text, sizeof text, "{\"status\":\"succeeded\",\"records_emitted\":%d}", found);
  check(sluice_done(text, n));
  return 0;
}
