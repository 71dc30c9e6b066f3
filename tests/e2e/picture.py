# picture -- pictures as kiln-render writes them, read without other packages: PNG (8 or 16 bits, every row with the Paeth or another
# filter) and .npy, as (width, height, [[channel, ...], ...] row by row, values in 0 to 1).
import ast, math, struct, sys, zlib


def paeth(a, b, c):
    p = a + b - c
    to_a, to_b, to_c = abs(p - a), abs(p - b), abs(p - c)
    return a if to_a <= to_b and to_a <= to_c else b if to_b <= to_c else c


def unfilter(kind, row, above, pixel):
    for i in range(len(row)):
        a = row[i - pixel] if i >= pixel else 0
        c = above[i - pixel] if i >= pixel else 0
        b = above[i]
        row[i] = (row[i] + (0, a, b, (a + b) // 2, paeth(a, b, c) if kind == 4 else 0)[kind]) & 255
    return row


def read_png(path):
    data = open(path, 'rb').read()
    assert data[:8] == b'\x89PNG\r\n\x1a\n', path
    at, packed = 8, b''
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        at += 12 + size
        if kind == b'IHDR': width, height, bits, colour = struct.unpack('>IIBB', body[:10])
        if kind == b'IDAT': packed += body
    channels, plain, pixels = {0: 1, 2: 3, 6: 4}[colour], zlib.decompress(packed), []
    pixel = channels * bits // 8
    above, stride = bytearray(width * pixel), width * pixel + 1
    for y in range(height):
        above = unfilter(plain[y * stride], bytearray(plain[y * stride + 1:(y + 1) * stride]), above, pixel)
        values = [v / 255 for v in above] if bits == 8 else [v / 65535 for v in struct.unpack('>%dH' % (width * channels), above)]
        pixels += [values[i:i + channels] for i in range(0, len(values), channels)]
    return width, height, pixels


def write_png(path, width, height, pixels):
    """8 bits a channel, 3 or 4 channels, values as bytes."""
    channels = len(pixels[0])
    rows = b''.join(b'\0' + bytes(v for p in pixels[y * width:(y + 1) * width] for v in p) for y in range(height))
    chunk = lambda kind, body: struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
    head = struct.pack('>IIBBBBB', width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    open(path, 'wb').write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def read_npy(path):
    data = open(path, 'rb').read()
    at = 10 + struct.unpack('<H', data[8:10])[0]
    height, width, channels = ast.literal_eval(data[10:at].decode())['shape']
    values = struct.unpack('<%df' % (width * height * channels), data[at:])
    return width, height, [values[i:i + channels] for i in range(0, len(values), channels)]


def db(a, b):
    """PSNR of two lists of colours, clamped to 0 to 1."""
    clamp = lambda v: min(1, max(0, v))
    mse = sum((clamp(p[c]) - clamp(q[c])) ** 2 for p, q in zip(a, b) for c in range(3)) / (3 * len(a))
    return -10 * math.log10(mse) if mse else math.inf


def compose(pixels, over):
    return [[p[c] * p[3] + (1 - p[3]) * over[c] for c in range(3)] for p in pixels]
