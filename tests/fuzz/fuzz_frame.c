/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The checksum of any frame: nothing else in it changes, and done twice it is done once. And frames that are built, of
 * any spec.
 */
#include <ktrxer.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_any(const uint8_t *data, uint32_t length, enum ktrxer_link link)
{
	struct ktrxer_frame_view view;
	int ret = ktrxer_frame_read(&view, data, length, link);

	if (ret ? ret != -EBADMSG : view.payload > length || view.payload_length > length - view.payload)
		abort();
}

static void checksum_any(const uint8_t *data, uint32_t length, enum ktrxer_link link)
{
	uint8_t *once = malloc(length ? length : 1), *twice = malloc(length ? length : 1);
	uint32_t changed = 0, first = 0, last = 0;
	int ret;

	if (!once || !twice)
		abort();
	memcpy(once, data, length);
	ret = ktrxer_frame_checksum(once, length, link);
	for (uint32_t i = 0; i < length; i++) {
		if (once[i] == data[i])
			continue;
		if (!changed++)
			first = i;
		last = i;
	}
	if (ret && (ret != -EBADMSG || changed))
		abort();
	if (changed && last - first > 1)
		abort();
	if (!ret) {
		memcpy(twice, once, length);
		if (ktrxer_frame_checksum(twice, length, link) || memcmp(once, twice, length))
			abort();
	}
	free(once);
	free(twice);
}

/* The parser reads the fields that the builder wrote. */
static void read_built(const uint8_t *frame, uint32_t length, uint32_t headers, const struct ktrxer_frame_spec *spec)
{
	const bool tcp = spec->proto == KTRXER_TCP;
	struct ktrxer_frame_view view;

	if (ktrxer_frame_read(&view, frame, length, spec->path->device.link))
		abort();
	if (view.proto != spec->proto || view.from_port != spec->from_port || view.to_port != spec->to_port ||
	    view.tos != spec->tos || view.payload != headers || view.payload_length != spec->payload_length ||
	    view.vlan != spec->vlan || view.vlan_tci != spec->vlan_tci ||
	    !ktrxer_addr_equal(&view.from, &spec->path->source) || !ktrxer_addr_equal(&view.to, &spec->path->to) ||
	    view.tcp_flags != spec->tcp_flags ||
	    (tcp && (view.tcp_sequence != spec->tcp_sequence || view.tcp_acknowledgement != spec->tcp_acknowledgement ||
		     view.tcp_window != spec->tcp_window)))
		abort();
}

static void build_any(const uint8_t *data, size_t size)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = { 0 };
	uint32_t capacity, headers;
	uint8_t *frame, *copy;
	int length;

	if (size < 48)
		return;
	path.device.link = data[0] & 1 ? KTRXER_LINK_RAW_IP : KTRXER_LINK_ETHERNET;
	path.to.family = path.source.family = data[0] & 2 ? AF_INET6 : AF_INET;
	spec.proto = data[0] & 64 ? KTRXER_TCP : data[0] & 4 ? KTRXER_UDP : data[0] & 2 ? KTRXER_ICMPV6 : KTRXER_ICMP;
	spec.vlan = data[0] & 128 && path.device.link == KTRXER_LINK_ETHERNET;
	spec.vlan_tci = spec.vlan ? (uint16_t)(data[10] << 8 | data[11]) : 0;
	if (spec.proto == KTRXER_TCP) {
		spec.tcp_sequence = (uint32_t)data[44] << 24 | data[45];
		spec.tcp_acknowledgement = (uint32_t)data[46] << 24 | data[47];
		spec.tcp_flags = data[11];
		spec.tcp_window = (uint16_t)(data[10] << 8);
		spec.tcp_options = data + 48;
		spec.tcp_options_length = (uint8_t)(size - 48 < data[10] % 41u ? size - 48 : data[10] % 41u);
	}
	spec.may_fragment = data[0] & 8;
	path.mtu = data[0] & 16 ? 68u + data[1] : 0;
	spec.tos = data[2];
	spec.ttl = data[3];
	spec.from_port = (uint16_t)(data[4] << 8 | data[5]);
	spec.to_port = (uint16_t)(data[6] << 8 | data[7]);
	capacity = (uint32_t)data[8] << 4 | data[9];
	memcpy(path.source.bytes, data + 12, 16);
	memcpy(path.to.bytes, data + 28, 16);
	spec.path = &path;
	spec.payload = data[0] & 32 ? NULL : data + 48;
	spec.payload_length = (uint32_t)(size - 48);

	frame = malloc(capacity ? capacity : 1);
	if (!frame)
		abort();
	length = ktrxer_frame_build(frame, capacity, &spec);
	headers = (uint32_t)ktrxer_frame_header_length(&spec);
	if (length < 0) {
		if (length != -EMSGSIZE)
			abort();
		if (headers + spec.payload_length <= capacity && !path.mtu)
			abort();
	} else {
		if ((uint32_t)length != headers + spec.payload_length || (uint32_t)length > capacity)
			abort();
		read_built(frame, (uint32_t)length, headers, &spec);
		/* the two ways to a checksum agree */
		copy = malloc((size_t)length);
		if (!copy)
			abort();
		memcpy(copy, frame, (size_t)length);
		if (ktrxer_frame_checksum(copy, (uint32_t)length, path.device.link) ||
		    memcmp(copy, frame, (size_t)length))
			abort();
		free(copy);
	}
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 65535)
		return 0;
	checksum_any(data, (uint32_t)size, KTRXER_LINK_ETHERNET);
	checksum_any(data, (uint32_t)size, KTRXER_LINK_RAW_IP);
	read_any(data, (uint32_t)size, KTRXER_LINK_ETHERNET);
	read_any(data, (uint32_t)size, KTRXER_LINK_RAW_IP);
	build_any(data, size);
	return 0;
}
