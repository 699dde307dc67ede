// A connector in AssemblyScript: it collects the primes below 100. It knows nothing of
// Sluice, and speaks JSON lines on standard input and output, which are WASI's files 0
// and 1.
//
//   asc primes.ts -O --use abort= -o primes.wasm
@external("wasi_snapshot_preview1", "fd_read")
declare function fd_read(fd: u32, vectors: usize, count: u32, read: usize): u16;
@external("wasi_snapshot_preview1", "fd_write")
declare function fd_write(fd: u32, vectors: usize, count: u32, written: usize): u16;
@external("wasi_snapshot_preview1", "clock_time_get")
declare function clock_time_get(clock: u32, precision: u64, time: usize): u16;
@external("wasi_snapshot_preview1", "proc_exit")
declare function proc_exit(code: u32): void;

const vector = memory.data(8); // where, how many bytes
const count = memory.data(4);
const byte = memory.data(1);
const clock = memory.data(8, 8);

// next is the next byte of the input, -1 at its end.
function next(): i32 {
  store<usize>(vector, byte);
  store<u32>(vector, 1, 4);
  if (fd_read(0, vector, 1, count) != 0 || load<u32>(count) == 0) return -1;
  return load<u8>(byte);
}

function say(line: string): void {
  const bytes = String.UTF8.encode(line + "\n");
  let at = changetype<usize>(bytes), left: u32 = bytes.byteLength;
  while (left > 0) {
    store<usize>(vector, at);
    store<u32>(vector, left, 4);
    if (fd_write(1, vector, 1, count) != 0) proc_exit(1);
    at += load<u32>(count);
    left -= load<u32>(count);
  }
}

export function _start(): void {
  for (let c = next(); c != 10; c = next()) if (c < 0) proc_exit(1); // START, of which it needs nothing
  clock_time_get(0, 1_000_000, clock);
  const now = new Date(load<u64>(clock) / 1_000_000).toISOString();
  let found = 0;
  for (let n = 2; n < 100; n++) {
    let d = 2;
    while (d * d <= n && n % d) d++;
    if (d * d <= n) continue;
    say(`{"type":"RECORD","stream":"primes","key":"${n}","data":{"id":"${n}","value":${n}},"emitted_at":"${now}"}`);
    found++;
  }
  say(`{"type":"DONE","status":"succeeded","records_emitted":${found}}`);
  while (next() >= 0) continue; // the end of input says that the host has taken DONE
}
