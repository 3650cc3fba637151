/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A datagram as each PDU of UDPSTP: what is read is written back the same, and a receiver counts it. */
#include "udpstp_rates.h"
#include "udpstp_receiver.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void receive(const struct udpstp_load *load)
{
	struct udpstp_receiver r;
	struct udpstp_status s;
	uint8_t out[UDPSTP_STATUS_BYTES];

	udpstp_receiver_begin(&r, 0);
	udpstp_receiver_load(&r, load, 1);
	udpstp_receiver_load(&r, load, 0);
	if (!udpstp_receiver_roll(&r, 2, 1) || r.saved.datagrams != 2 || r.saved.duplicates != 1)
		abort();
	udpstp_receiver_status(&r, &s, 3, 4);
	udpstp_status_write(out, &s);
	if (udpstp_status_read(&s, out, sizeof out) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[UDPSTP_STATUS_BYTES], again[UDPSTP_STATUS_BYTES];
	struct udpstp_activation activation;
	struct udpstp_status status;
	struct udpstp_setup setup;
	struct udpstp_load load;

	if (udpstp_setup_read(&setup, data, size) == 0) {
		udpstp_setup_write(out, &setup);
		if (udpstp_setup_read(&setup, out, UDPSTP_SETUP_BYTES) < 0)
			abort();
		udpstp_setup_write(again, &setup);
		if (memcmp(out, again, UDPSTP_SETUP_BYTES) != 0)
			abort();
	}
	if (udpstp_activation_read(&activation, data, size) == 0) {
		(void)udpstp_rate_fits(&activation.rate);
		udpstp_activation_write(out, &activation);
		if (udpstp_activation_read(&activation, out, UDPSTP_ACTIVATION_BYTES) < 0)
			abort();
		udpstp_activation_write(again, &activation);
		if (memcmp(out, again, UDPSTP_ACTIVATION_BYTES) != 0)
			abort();
	}
	if (udpstp_status_read(&status, data, size) == 0) {
		(void)udpstp_status_feedback(&status, true);
		udpstp_status_write(out, &status);
		if (udpstp_status_read(&status, out, UDPSTP_STATUS_BYTES) < 0)
			abort();
		udpstp_status_write(again, &status);
		if (memcmp(out, again, UDPSTP_STATUS_BYTES) != 0)
			abort();
	}
	if (udpstp_load_read(&load, data, size, size) == 0)
		receive(&load);
	return 0;
}
