// A connector in C: it collects the primes below 100. It knows nothing of Sluice, and
// speaks JSON lines on standard input and output.
//
//   clang --target=wasm32-wasi -O2 -o primes.wasm primes.c
#include <stdio.h>
#include <time.h>

int main(void) {
  int c, found = 0;
  while ((c = getchar()) != '\n')  // START, of which it needs nothing
    if (c == EOF) return 1;
  char now[32];
  time_t t = time(NULL);
  strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
  for (int n = 2; n < 100; n++) {
    int d = 2;
    while (d * d <= n && n % d) d++;
    if (d * d <= n) continue;
    printf("{\"type\":\"RECORD\",\"stream\":\"primes\",\"key\":\"%d\",\"data\":{\"id\":\"%d\",\"value\":%d},\"emitted_at\":\"%s\"}\n", n, n, n, now);
    found++;
  }
  printf("{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":%d}\n", found);
  fflush(stdout);
  while (getchar() != EOF) continue;  // the end of input says that the host has taken DONE
  return 0;
}
