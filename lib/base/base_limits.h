/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Limits that several layers share; a limit of one layer stands there. A number has its reason beside it. */
#ifndef KTRXER_LIB_BASE_LIMITS_H
#define KTRXER_LIB_BASE_LIMITS_H

enum {
	KTX_BATCH_MAX = 64, /* frames of one sendmmsg: beyond it nothing is gained (zmap PR 751) */
	KTX_FRAME_MAX = 65535 + 18,
	/* a stamp of a device that never stamped holds reports back by at most this */
	KTX_STAMP_WAIT_NS = 100 * 1000 * 1000,
	/* the driver's stamp of a packet that has entered the packet scheduler: a longer own queue is not measured */
	KTX_OWN_QUEUE_WAIT_S = 3,
	KRX_RULES_MAX = 16384,
	KRX_RING_MAX = 1 << 30,
	KRX_SNAP_MAX = 262144,
	/* a stamped packet may take this long to its place in the queue, if its processor is taken away */
	KRX_STAMP_BEFORE_NS = 20 * 1000 * 1000,
#ifdef KTRXER_SMALL
	KTRXER_SERVER_EXTRAS = 0, /* the small static program has no room for log, metrics, reload and passed sockets */
#else
	KTRXER_SERVER_EXTRAS = 1,
#endif
};

#endif
