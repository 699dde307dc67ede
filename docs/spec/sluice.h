/* The guest ABI of Sluice, version 1.1, for C. See docs/spec/abi.md.
 *
 *   clang --target=wasm32-wasi -O2 -Idocs/spec -o connector.wasm connector.c
 *
 * A module imports what it calls and nothing else, so including this file
 * asks for nothing. Of sluice_v1_network and sluice_v1_browser it may only
 * call what its manifest declares a binding for.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_MAJOR 1
#define SLUICE_MINOR 1

#ifdef __wasm__
#define SLUICE_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#else /* for editors and for gcc -fsyntax-only */
#define SLUICE_IMPORT(module, name)
#endif

/* Error numbers: a call that fails returns one of them, negated. */
enum sluice_errno {
  SLUICE_EPROTO = 1,     /* the run was ended for a violation; exit */
  SLUICE_EINVAL = 2,     /* malformed request of a function that takes no message */
  SLUICE_EFAULT = 3,     /* pointer outside of memory */
  SLUICE_ETOOBIG = 4,    /* over a limit that the error text names */
  SLUICE_EDENIED = 5,    /* not granted */
  SLUICE_ENOTSUP = 6,    /* unknown verb, or not in this minor version */
  SLUICE_ECANCELED = 7,  /* the run is being cancelled: send done and exit */
  SLUICE_ETIMEOUT = 8,   /* the limit that is named passed */
  SLUICE_EUNAVAIL = 9,   /* granted, not reachable now */
  SLUICE_ERATE = 10,     /* a rate governor would wait longer than allowed */
  SLUICE_EIO = 11,       /* the host failed */
  SLUICE_ENOENT = 12,    /* no such handle, file or element */
  SLUICE_EBUSY = 13,     /* in use, or the owner has control */
  SLUICE_ENOSPC = 14     /* a quota or the disk is full */
};

/* Every function takes a request in memory. The result is the length of the
 * pending reply, or minus an error number, of which the pending reply is then
 * the text: {"code","message","detail"?}. sluice_reply copies it; the next
 * call drops it. */

/* Messages, as JSON without the member "type". */
SLUICE_IMPORT("sluice_v1", "start") int64_t sluice_start(const void *none, size_t len);        /* -> START */
SLUICE_IMPORT("sluice_v1", "emit") int64_t sluice_emit(const void *frame, size_t len);         /* a record frame; returns when it is queued */
SLUICE_IMPORT("sluice_v1", "checkpoint") int64_t sluice_checkpoint(const void *p, size_t len); /* STATE; waits until it is staged */
SLUICE_IMPORT("sluice_v1", "progress") int64_t sluice_progress(const void *p, size_t len);
SLUICE_IMPORT("sluice_v1", "skip") int64_t sluice_skip(const void *p, size_t len);             /* SKIP_RESULT */
SLUICE_IMPORT("sluice_v1", "gap") int64_t sluice_gap(const void *p, size_t len);               /* DETAIL_GAP */
SLUICE_IMPORT("sluice_v1", "recovered") int64_t sluice_recovered(const void *p, size_t len);   /* DETAIL_GAP_RECOVERED */
SLUICE_IMPORT("sluice_v1", "coverage") int64_t sluice_coverage(const void *p, size_t len);     /* DETAIL_COVERAGE */
SLUICE_IMPORT("sluice_v1", "interact") int64_t sluice_interact(const void *p, size_t len);     /* INTERACTION -> INTERACTION_RESPONSE; blocks */
SLUICE_IMPORT("sluice_v1", "assist") int64_t sluice_assist(const void *p, size_t len);         /* ASSISTANCE -> {"assistance_request_id"} */
SLUICE_IMPORT("sluice_v1", "assist_status") int64_t sluice_assist_status(const void *p, size_t len);
SLUICE_IMPORT("sluice_v1", "message") int64_t sluice_message(const void *p, size_t len);
SLUICE_IMPORT("sluice_v1", "log") int64_t sluice_log(const void *p, size_t len);
SLUICE_IMPORT("sluice_v1", "done") int64_t sluice_done(const void *p, size_t len);             /* DONE; exit afterwards */

/* The pending reply, and bodies by their handles. */
SLUICE_IMPORT("sluice_v1", "reply") int32_t sluice_reply(void *dst, size_t cap);                 /* -> bytes copied; the rest stays pending */
SLUICE_IMPORT("sluice_v1", "read") int64_t sluice_read(int32_t handle, void *dst, size_t cap);   /* -> bytes, 0 at the end */
SLUICE_IMPORT("sluice_v1", "close") int64_t sluice_close(int32_t handle);

/* Files for records, since minor 2: u32 n, n bytes of JSON, content; u32 handle, u32 flags, content. */
SLUICE_IMPORT("sluice_v1", "attach") int64_t sluice_attach(const void *frame, size_t len);
SLUICE_IMPORT("sluice_v1", "attach_part") int64_t sluice_attach_part(const void *frame, size_t len);

/* Binding "network": a frame of u32 n, n bytes of JSON, body; several of them. */
SLUICE_IMPORT("sluice_v1_network", "request") int64_t sluice_request(const void *frame, size_t len);
SLUICE_IMPORT("sluice_v1_network", "exchange") int64_t sluice_exchange(const void *frame, size_t len); /* since minor 1 */

/* Binding "browser": {"verb", ...}. */
SLUICE_IMPORT("sluice_v1_browser", "call") int64_t sluice_browser(const void *p, size_t len);

/* Record frames.
 *
 *   sluice_frame f;
 *   sluice_frame_begin(&f, buffer, sizeof buffer);
 *   if (!sluice_frame_add(&f, SLUICE_UPSERT, SLUICE_KEY_TEXT, 0, 0, key, key_len, data, data_len)) { send, begin again, add again }
 *   sluice_emit(f.bytes, f.len);
 */
#define SLUICE_FRAME_HEADER 8u
#define SLUICE_RECORD_HEADER 20u
#define SLUICE_FRAME_RECORDS 65535u
#define SLUICE_FRAME_BYTES ((1u << 20) + (64u << 10)) /* the most that one may have */

enum sluice_op { SLUICE_UPSERT = 0, SLUICE_DELETE = 1 };
enum sluice_key { SLUICE_KEY_TEXT = 0, SLUICE_KEY_COMPOUND = 1 }; /* compound: a JSON array of strings without white space */

typedef struct {
  uint8_t *bytes;
  size_t len, cap;
  uint32_t count;
} sluice_frame;

static inline void sluice_put(uint8_t *to, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(v >> (8 * i));
}

/* Begins an empty frame in a buffer of at least SLUICE_FRAME_HEADER bytes. */
static inline void sluice_frame_begin(sluice_frame *f, void *buffer, size_t cap) {
  f->bytes = (uint8_t *)buffer;
  f->cap = cap < SLUICE_FRAME_BYTES ? cap : SLUICE_FRAME_BYTES;
  f->len = SLUICE_FRAME_HEADER;
  f->count = 0;
  f->bytes[0] = 'S';
  f->bytes[1] = 'R';
  f->bytes[2] = 1;
  f->bytes[3] = 0;
  sluice_put(f->bytes + 4, 0, 4);
}

/* Adds a record: stream is its index in START.scope.streams, emitted_at are
 * microseconds since 1970 UTC, 0 for now. Returns 0 and leaves the frame as it
 * was if there is no room. */
static inline int sluice_frame_add(sluice_frame *f, enum sluice_op op, enum sluice_key kind, uint16_t stream, int64_t emitted_at,
                                   const void *key, size_t key_len, const void *data, size_t data_len) {
  size_t room = f->cap - f->len;
  if (f->count == SLUICE_FRAME_RECORDS || room < SLUICE_RECORD_HEADER) return 0;
  room -= SLUICE_RECORD_HEADER;
  if (key_len > room || data_len > room - key_len) return 0;
  uint8_t *h = f->bytes + f->len;
  h[0] = (uint8_t)op;
  h[1] = (uint8_t)kind;
  sluice_put(h + 2, stream, 2);
  sluice_put(h + 4, (uint64_t)emitted_at, 8);
  sluice_put(h + 12, key_len, 4);
  sluice_put(h + 16, data_len, 4);
  if (key_len) memcpy(h + SLUICE_RECORD_HEADER, key, key_len);
  if (data_len) memcpy(h + SLUICE_RECORD_HEADER + key_len, data, data_len);
  f->len += SLUICE_RECORD_HEADER + key_len + data_len;
  sluice_put(f->bytes + 4, ++f->count, 4);
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif
