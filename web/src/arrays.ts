// SPDX-License-Identifier: MIT OR Apache-2.0
// Columns of samples in the format of python/ktrxer/view/pack.py: little-endian raw numbers, in base64 or as they are,
// value = base + scale * raw. The smallest raw integer marks a missing value.

export interface PackedArray {
  type: "f32" | "f64" | "i32" | "i24";
  count: number;
  base: number;
  scale: number;
  data: string | Uint8Array;
}

export const SIZES = { f32: 4, f64: 8, i32: 4, i24: 3 } as const;
const MISSING = { i32: -2147483648, i24: -8388608 } as const;

export class PackedError extends Error {}

export function decode(packed: PackedArray): Float64Array {
  const { type, count, base, scale, data } = packed;
  const bytes = typeof data === "string" ? unpacked(data) : data;
  if (bytes.length !== count * SIZES[type]) {
    throw new PackedError(`a column should hold ${count} samples and has ${bytes.length} bytes`);
  }
  const out = new Float64Array(count);
  // DataView reads little-endian on any host; typed arrays would use the byte order of this machine.
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (type) {
    case "f64":
      for (let i = 0; i < count; i++) out[i] = base + scale * view.getFloat64(8 * i, true);
      break;
    case "f32":
      for (let i = 0; i < count; i++) out[i] = base + scale * view.getFloat32(4 * i, true);
      break;
    case "i32":
      for (let i = 0; i < count; i++) {
        const raw = view.getInt32(4 * i, true);
        out[i] = raw === MISSING.i32 ? NaN : base + scale * raw;
      }
      break;
    case "i24":
      for (let i = 0; i < count; i++) {
        const raw = (view.getInt8(3 * i + 2) << 16) | view.getUint16(3 * i, true);
        out[i] = raw === MISSING.i24 ? NaN : base + scale * raw;
      }
      break;
  }
  return out;
}

export function unpacked(data: string): Uint8Array {
  let text: string;
  try {
    text = atob(data);
  } catch {
    throw new PackedError("a column of samples is not base64");
  }
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The columns of a report. Each is decoded at its first use. */
export class Columns {
  private readonly done = new Map<number, Float64Array>();

  constructor(private readonly packed: readonly PackedArray[]) {}

  get(index: number): Float64Array {
    let found = this.done.get(index);
    if (!found) {
      const packed = this.packed[index];
      if (!packed) throw new PackedError(`there is no column ${index}`);
      found = decode(packed);
      this.done.set(index, found);
    }
    return found;
  }
}
