/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Frames out of a capture file, with the file's own timing. */
#ifndef KTRXER_CLI_SEND_REPLAY_H
#define KTRXER_CLI_SEND_REPLAY_H

#include "pcapng.h"

struct send_run;

/* The results of a first pass over the whole file, before anything is sent. */
struct replay_scan {
	uint64_t packets, bytes;
	uint64_t cut_short;  /* the file has not all of the frame */
	uint64_t oversized;  /* larger than the device takes */
	uint64_t other_link; /* another link layer than the device's */
	uint64_t backwards;  /* times before their predecessor's */
	uint64_t timeless;   /* no time at all: sent with the one before */
	uint64_t abroad;     /* to addresses that are not for local use */
	uint64_t longest_gap_ns;
	uint64_t span_ns;
	bool whole;                     /* the file could be read to its end */
	char damage[KTRXER_ERROR_TEXT]; /* else: why not */
};

struct replay {
	struct ktrxer_capture *capture;
	struct replay_scan scan;
	bool scanned;                  /* not with a pipe */
	uint64_t speed_num, speed_den; /* time is divided by num/den */
	uint64_t max_gap_ns;           /* longer silences are cut to this; 0: kept */
	uint64_t left;                 /* rounds to go after this one */
	/* the packet that is next, and its place in time */
	struct ktrxer_capture_packet packet;
	bool have_first;
	int64_t last_file_ns; /* the latest time so far, since the clock of the file was set back */
	bool far_back;        /* the packet before was far before it, */
	int64_t back_ns;      /* at this time */
	uint64_t offset_ns;   /* of the packet from the start, unscaled, silences cut */
	/* never handed to an engine */
	uint64_t refused_cut, refused_size, refused_link;
};

/* Opens, and scans a regular file. */
int send_replay_open(struct send_run *run, struct ktrxer_error *err);
/* *offset_ns counts from the start of sending. -ENODATA after the last packet, -EBADMSG where the file is damaged. */
int send_replay_next(struct send_run *run, uint64_t *offset_ns, struct ktrxer_error *err);
void send_replay_close(struct send_run *run);

/* Pure: the place of a packet with the file's time `time_ns`, given those before. */
uint64_t send_replay_advance(struct replay *replay, bool has_time, int64_t time_ns);
/* offset * den / num, saturating. */
uint64_t send_replay_scale(const struct replay *replay, uint64_t offset_ns);

#endif
