// A connector in Rust: it collects the primes below 100. It knows nothing of Sluice, and
// speaks JSON lines on standard input and output.
//
//   rustc --target wasm32-wasip1 -O -o primes.wasm primes.rs    # wasm32-wasi before Rust 1.78
use std::io::{self, BufRead, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

fn main() -> io::Result<()> {
    let mut start = String::new();
    io::stdin().lock().read_line(&mut start)?; // START, of which it needs nothing
    let now = timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()));
    let mut out = io::BufWriter::new(io::stdout());
    let mut found = 0;
    for n in 2..100u32 {
        if (2..n).any(|d| n % d == 0) {
            continue;
        }
        writeln!(
            out,
            r#"{{"type":"RECORD","stream":"primes","key":"{n}","data":{{"id":"{n}","value":{n}}},"emitted_at":"{now}"}}"#
        )?;
        found += 1;
    }
    writeln!(out, r#"{{"type":"DONE","status":"succeeded","records_emitted":{found}}}"#)?;
    out.flush()?;
    io::stdin().lock().read_to_end(&mut Vec::new())?; // its end says that the host has taken DONE
    Ok(())
}

// timestamp is a time in RFC 3339, from seconds since 1970.
fn timestamp(seconds: u64) -> String {
    let z = seconds / 86_400 + 719_468; // days since March 1st of the year 0
    let (era, day) = (z / 146_097, z % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let m = (5 * of_year + 2) / 153;
    let month = if m < 10 { m + 3 } else { m - 9 };
    let (d, s) = (of_year - (153 * m + 2) / 5 + 1, seconds % 86_400);
    let y = era * 400 + year + u64::from(month < 3);
    format!("{y:04}-{month:02}-{d:02}T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60)
}
