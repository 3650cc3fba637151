# SPDX-License-Identifier: MIT OR Apache-2.0
"""Quality of a call by the E-model of ITU-T G.107 (06/2015): R = Ro - Is - Id - Ie_eff + A, and the mean opinion score of it.

Names are those of the recommendation; numbers of equations are those of its section 7. The model is for planning: its result is what an
average listener is expected to say of a narrowband telephone call, not a measurement of one call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Codec:
    """Ie and Bpl of G.113, Appendix I (05/2007). frame_ms: the time that a packet takes to fill."""

    name: str
    ie: float
    bpl: float
    frame_ms: float = 20


G711 = Codec("G.711", 0, 4.3)  # without concealment of lost packets
G711_PLC = Codec("G.711 with loss concealment", 0, 25.1)
G729A = Codec("G.729A with VAD", 11, 19.0)
G723_63 = Codec("G.723.1 at 6.3 kbit/s with VAD", 15, 16.1, 30)
GSM_EFR = Codec("GSM-EFR", 5, 10.0)


@dataclass(frozen=True)
class Circuit:
    """The inputs of the model. The defaults are those of Table 2."""

    slr: float = 8  # dB, send loudness rating
    rlr: float = 2  # dB, receive loudness rating
    stmr: float = 15  # dB, sidetone masking rating
    ds: float = 3  # D-factor of the telephone at the sender
    dr: float = 3  # ... and at the receiver; LSTR = STMR + Dr
    telr: float = 65  # dB, talker echo loudness rating
    wepl: float = 110  # dB, weighted echo path loss
    t: float = 0  # ms, mean one-way delay of the echo path
    tr: float = 0  # ms, round-trip delay in a four-wire loop
    ta: float = 0  # ms, delay from mouth to ear
    qdu: float = 1  # quantizing distortion units
    ie: float = 0  # equipment impairment without loss
    bpl: float = 4.3  # robustness against loss
    ppl: float = 0  # %, lost packets
    burst_r: float = 1  # mean length of bursts of loss over that of random loss
    nc: float = -70  # dBm0p, circuit noise
    nfor: float = -64  # dBmp, noise floor at the receiver
    ps: float = 35  # dB(A), room noise at the sender
    pr: float = 35  # ... and at the receiver
    a: float = 0  # advantage
    st: float = 1  # sensitivity to delay, and ...
    mt: float = 100  # ms, the smallest delay that is noticed: both of the default class of users


@dataclass(frozen=True)
class Rating:
    r: float
    mos: float
    ro: float
    is_: float
    id_: float
    ie_eff: float


def rating(c: Circuit) -> Rating:
    if not all(math.isfinite(value) for value in vars(c).values()):
        raise ValueError("a value of the circuit is not finite")
    if not 0 <= c.ppl <= 100 or c.burst_r <= 0 or c.bpl <= 0 or min(c.t, c.tr, c.ta) < 0:
        raise ValueError("the loss is 0 to 100 %, delays are not negative, Bpl and BurstR are above 0")
    no = _noise(c)
    ro = 15 - 1.5 * (c.slr + no)  # 7-2
    ist = _sidetone(c)
    is_ = _loudness(c, no) + ist + _quantizing(c, ro)  # 7-8
    id_ = _talker_echo(c, no, ist) + _listener_echo(c, ro) + _delay(c)  # 7-17
    ie_eff = c.ie + (95 - c.ie) * c.ppl / (c.ppl / c.burst_r + c.bpl)  # 7-29
    r = ro - is_ - id_ - ie_eff + c.a
    return Rating(r, mos(r), ro, is_, id_, ie_eff)


def mos(r: float) -> float:
    """B-4. Below R = 6.5 the cubic falls under 1, the smallest score."""
    if r <= 0:
        return 1.0
    return 4.5 if r >= 100 else max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def _power_sum(*levels: float) -> float:
    return 10 * math.log10(sum(10 ** (level / 10) for level in levels))


def _root(value: float, power: float) -> float:
    """(1 + value^power)^(1 / power), a form that many equations of the model have."""
    return math.pow(1 + math.pow(value, power), 1 / power)


def _noise(c: Circuit) -> float:
    """No: the sum of all sources of noise, at 0 dBr (7-3 to 7-7)."""
    olr = c.slr + c.rlr
    nos = c.ps - c.slr - c.ds - 100 + 0.004 * (c.ps - olr - c.ds - 14) ** 2
    pre = c.pr + 10 * math.log10(1 + 10 ** ((10 - (c.stmr + c.dr)) / 10))
    nor = c.rlr - 121 + pre + 0.008 * (pre - 35) ** 2
    return _power_sum(c.nc, nos, nor, c.nfor + c.rlr)


def _loudness(c: Circuit, no: float) -> float:
    """Iolr: too low a loudness (7-9, 7-10)."""
    xolr = c.slr + c.rlr + 0.2 * (64 + no - c.rlr)
    return 20 * (_root(xolr / 8, 8) - xolr / 8)


def _sidetone(c: Circuit) -> float:
    """Ist: sidetone that is not optimal (7-11, 7-12)."""
    x = -10 * math.log10(10 ** (-c.stmr / 10) + math.exp(-c.t / 4) * 10 ** (-c.telr / 10))
    return 12 * _root((x - 13) / 6, 8) - 28 * _root((x + 1) / 19.4, 35) - 13 * _root((x - 3) / 33, 13) + 29


def _quantizing(c: Circuit, ro: float) -> float:
    """Iq (7-13 to 7-16)."""
    q = 37 - 15 * math.log10(c.qdu)
    g = 1.07 + 0.258 * q + 0.0602 * q * q
    y = (ro - 100) / 15 + 46 / 8.4 - g / 9
    z = 46 / 30 - g / 40
    return 15 * math.log10(1 + 10**y + 10**z)


def _talker_echo(c: Circuit, no: float, ist: float) -> float:
    """Idte (7-18 to 7-24)."""
    terv = c.telr - 40 * math.log10((1 + c.t / 10) / (1 + c.t / 150)) + 6 * math.exp(-0.3 * c.t * c.t)
    if c.stmr < 9:
        terv += ist / 2
    roe, re = -1.5 * (no - c.rlr), 80 + 2.5 * (terv - 14)
    half = (roe - re) / 2
    idte = (half + math.sqrt(half * half + 100) - 1) * (1 - math.exp(-c.t))
    return math.sqrt(idte * idte + ist * ist) if c.stmr > 20 else idte


def _listener_echo(c: Circuit, ro: float) -> float:
    """Idle (7-25, 7-26)."""
    half = (ro - 10.5 * (c.wepl + 7) * math.pow(c.tr + 1, -0.25)) / 2
    return half + math.sqrt(half * half + 169)


def _delay(c: Circuit) -> float:
    """Idd: too long a delay, even without an echo (7-27, 7-28)."""
    if c.ta <= c.mt:
        return 0.0
    x, power = math.log2(c.ta / c.mt), 6 * c.st
    return 25 * (_root(x, power) - 3 * _root(x / 3, power) + 2)


# ------------------------------------------------------------------------------------------------------- from a measurement


@dataclass(frozen=True)
class Playout:
    """The packets that a receiver with a fixed jitter buffer plays."""

    delay_ms: float  # from the sender's packet to its play-out
    ppl: float  # %, lost on the path or too late to be played
    late: int
    lost: int
    count: int
    burst_r: float


def playout(delays_ms: Floats, buffer_ms: float) -> Playout | None:
    """`delays_ms`: one-way delays of all packets in the order in which they were sent; NaN: lost. The buffer delays a packet with the
    smallest delay by `buffer_ms`; packets that are later than that are lost to the listener. None: no packet arrived."""
    if buffer_ms < 0:
        raise ValueError("a buffer holds no negative time")
    delays = np.asarray(delays_ms, np.float64)
    lost = np.isnan(delays)
    if lost.all():
        return None
    played_at = float(np.nanmin(delays)) + buffer_ms
    missing = lost | (delays > played_at + 1e-9)
    share = float(missing.mean())
    late = int(missing.sum() - lost.sum())
    return Playout(played_at, 100 * share, late, int(lost.sum()), len(delays), burst_ratio(missing))


def burst_ratio(missing: NDArray[np.bool_]) -> float:
    """BurstR: the mean length of a run of losses over the mean length with the same share of losses at random, 1 / (1 - share). The model
    is for 1 and more: runs that are shorter than at random count as random."""
    starts = int(np.count_nonzero(missing[1:] & ~missing[:-1]) + bool(len(missing) and missing[0]))
    share = float(missing.mean()) if len(missing) else 0.0
    if not starts or share >= 1:
        return 1.0
    return max(1.0, float(missing.sum()) / starts * (1 - share))


BUFFER_MS = 40.0  # two packets of 20 ms


@dataclass(frozen=True)
class Call:
    rating: Rating
    playout: Playout
    delay_ms: float  # from mouth to ear


def call(delays_ms: Floats, back_ms: float | None = None, codec: Codec = G711_PLC, buffer_ms: float = BUFFER_MS) -> Call | None:
    """One direction of a call. `back_ms`: the delay of the other direction from mouth to ear, for the echo; None: as long as this one."""
    heard = playout(delays_ms, buffer_ms)
    if heard is None:
        return None
    ta = max(0.0, heard.delay_ms) + codec.frame_ms
    back = ta if back_ms is None else back_ms
    circuit = Circuit(
        t=(ta + back) / 2, tr=ta + back, ta=ta, ie=codec.ie, bpl=codec.bpl, ppl=heard.ppl, burst_r=heard.burst_r,
    )  # fmt: skip
    return Call(rating(circuit), heard, ta)
