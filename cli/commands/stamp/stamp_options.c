/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options of `stamp`, as a specification of what to measure. */
#include "stamp_command.h"

#include "dscp.h"
#include "error.h"
#include "stamp_packet.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	uint8_t type;
} tlv_names[] = {
	{ "location", STAMP_TLV_LOCATION },
	{ "time-info", STAMP_TLV_TIME_INFO },
	{ "cos", STAMP_TLV_COS },
	{ "direct", STAMP_TLV_DIRECT },
};

static int read_tlvs(struct stamp_spec *spec, const struct stamp_options *o, struct ktrxer_error *err)
{
	for (int i = 0; i < o->tlvs.count; i++) {
		size_t which = 0;

		while (which < sizeof tlv_names / sizeof *tlv_names &&
		       strcmp(tlv_names[which].name, o->tlvs.items[i]) != 0)
			which++;
		if (which == sizeof tlv_names / sizeof *tlv_names)
			return ktrxer_fail(err, -EINVAL, "--tlv %s: not one of location, time-info, cos, direct",
					   o->tlvs.items[i]);
		if (spec->tlv_count == STAMP_TLVS)
			return ktrxer_fail(err, -EINVAL, "--tlv %s: at most %d extensions at once", o->tlvs.items[i],
					   STAMP_TLVS);
		spec->tlvs[spec->tlv_count++] = tlv_names[which].type;
	}
	return 0;
}

static int read_classes(struct stamp_spec *spec, const struct stamp_options *o, struct ktrxer_error *err)
{
	for (const char *text = o->dscp; text;) {
		struct ktrxer_error word;
		uint8_t dscp;
		int rc = dscp_next(&dscp, &text, &word);

		if (rc < 0)
			return ktrxer_fail(err, rc, "--dscp: %s", word.text);
		if (spec->class_count == STAMP_CLASSES)
			return ktrxer_fail(err, -EINVAL, "--dscp %.40s: at most %d at once", o->dscp, STAMP_CLASSES);
		spec->tos[spec->class_count++] = (uint8_t)(dscp << 2 | o->ecn);
	}
	if (o->ssid > UINT16_MAX - (spec->class_count - 1))
		return ktrxer_fail(err, -EINVAL, "--ssid %u: with %u classes it may be %u at most", (unsigned)o->ssid,
				   spec->class_count, UINT16_MAX - (spec->class_count - 1));
	return 0;
}

int stamp_spec_make(struct stamp_spec *spec, struct stamp_keys *keys, const struct stamp_options *o,
		    struct ktrxer_error *err)
{
	int rc = secret_stamp_keys_read(keys, o->auth_key_file, o->tlv_key_file, err);

	*spec = (struct stamp_spec){ .auth_key = o->auth_key_file ? &keys->auth : NULL,
				     .tlv_key = o->tlv_key_file ? &keys->tlv : NULL,
				     .ssid = (uint16_t)o->ssid,
				     .ptp = o->ptp,
				     .follow_up = o->follow_up,
				     .clock = o->clock,
				     .limits = o->limits,
				     .host_delay = o->host_delay };
#ifndef KTRXER_SMALL
	if (rc == 0 && o->echo && o->p.precise)
		rc = ktrxer_fail(err, -EINVAL,
				 "--echo goes without --precise: a thread of one engine would wait for the other");
#endif
	if (rc == 0 && o->host_delay && !o->follow_up)
		rc = ktrxer_fail(err, -EINVAL,
				 "--host-delay needs the reflector's driver stamps: not with --no-follow-up");
	if (rc == 0 && (rc = read_tlvs(spec, o, err)) == 0 && (rc = read_classes(spec, o, err)) == 0)
		rc = probe_spec_make(&spec->probe, &o->p, spec->class_count + o->echo, err);
	return rc;
}
