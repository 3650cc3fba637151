/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_plan.h"

#include "error.h"

#include <errno.h>
#include <math.h>

/* Of a frame of `bytes` and the gap behind it on link `link`, the first of which is 0. Returns nanoseconds. */
static double transmission(const struct ppt_path *path, uint32_t link, double bytes)
{
	return 1e9 * (8 * bytes + path->gap_bits) / (double)path->capacity_bit_s[link];
}

static int path_check(const struct ppt_path *path, uint32_t heading, struct ktrxer_error *err)
{
	if (!path->links || path->links > PPT_LINKS_MAX)
		return ktrxer_fail(err, -EINVAL, "a path of %u links: give 1 to %d capacities", path->links,
				   PPT_LINKS_MAX);
	for (uint32_t i = 0; i < path->links; i++)
		if (!path->capacity_bit_s[i])
			return ktrxer_fail(err, -EINVAL, "link %u has a capacity of 0", i + 1);
	if (heading < PPT_SIZE_MIN || heading > PPT_SIZE_MAX)
		return ktrxer_fail(err, -EINVAL, "a heading packet of %u bytes: frames have %d to %d bytes on the wire",
				   heading, PPT_SIZE_MIN, PPT_SIZE_MAX);
	return 0;
}

/* Arrays begin at 0, numbers at 1: link i is c[i - 1]. */
static void find_turns(const struct ppt_path *path, struct ppt_sizing *r)
{
	const uint64_t *c = path->capacity_bit_s;
	const uint32_t n = path->links;
	double largest = 0;

	r->narrow = 1;
	for (uint32_t i = 2; i <= n; i++)
		if (c[i - 1] <= c[r->narrow - 1])
			r->narrow = i;
	for (uint32_t z = r->narrow; z < n; z++)
		if ((double)c[z] / (double)c[z - 1] >= largest) { /* of equal ones that nearest to the receiver */
			largest = (double)c[z] / (double)c[z - 1];
			r->node = z;
		}
}

/* Returns the ratio of both sizes; INFINITY if no trailing packet is small enough. */
static double ratio(double heading, double trailing)
{
	return trailing > 0 ? fmax(1, heading / trailing) : INFINITY;
}

/* Link i to link i + 1. */
static double share_of(const struct ppt_path *path, uint32_t i)
{
	return (double)path->capacity_bit_s[i - 1] / (double)path->capacity_bit_s[i];
}

/* The trailing packet that takes as long, gap included, as `share` of the heading packet. */
static double behind(const struct ppt_path *path, double heading, double share)
{
	const double gap = path->gap_bits / 8.0;

	return (heading + gap) * share - gap;
}

static double largest_trailing(const struct ppt_path *path, uint32_t heading, uint32_t node)
{
	const uint64_t *c = path->capacity_bit_s;
	const uint32_t n = path->links;
	double after = 0, before = 0;

	if (!node) /* (20), (21) */
		return n < 2 ? heading : behind(path, heading, share_of(path, n - 1));
	for (uint32_t j = node; j < n; j++) { /* (22), (23) */
		after += 1 / (double)c[j];
		before += 1 / (double)c[j - 1];
	}
	return behind(path, heading, after / before);
}

void ppt_disperse(const struct ppt_path *path, uint32_t heading, uint32_t trailing, const struct ppt_cross *cross,
		  struct ppt_dispersion *r)
{
	double delta = 0;

	for (uint32_t i = 1; i < path->links; i++) {
		double one = cross ? transmission(path, i, cross->bytes) : 0;
		double before = cross ? cross->links[i].before * one : 0,
		       between = cross ? cross->links[i].between * one : 0; /* (27), (28) */
		double ahead = transmission(path, i, heading) + before - transmission(path, i - 1, trailing); /* (26) */

		delta = fmax(delta - ahead, between); /* (25) */
	}
	r->unbiased = delta < 1e-6;
	r->delta_ns = r->unbiased ? 0 : delta;
	r->gap_ns = transmission(path, path->links - 1, trailing) + r->delta_ns; /* (24) */
	r->capacity_bit_s = 1e9 * (8.0 * trailing + path->gap_bits) / r->gap_ns;
}

static uint32_t largest_undispersed(const struct ppt_path *path, uint32_t heading, const struct ppt_cross *cross)
{
	struct ppt_dispersion d;

	for (uint32_t trailing = heading; trailing >= PPT_SIZE_MIN; trailing--) {
		ppt_disperse(path, heading, trailing, cross, &d);
		if (d.unbiased)
			return trailing;
	}
	return 0;
}

int ppt_size(const struct ppt_path *path, uint32_t heading, uint32_t resolution_ns, const struct ppt_cross *cross,
	     struct ppt_sizing *r, struct ktrxer_error *err)
{
	double step;
	int rc = path_check(path, heading, err);

	*r = (struct ppt_sizing){ 0 };
	if (rc < 0)
		return rc;
	find_turns(path, r);
	r->trailing_max_bytes = largest_trailing(path, heading, r->node);
	r->alpha_min = ratio(heading, r->trailing_max_bytes);
	r->alpha_rule = 1;
	for (uint32_t i = 1; i < path->links; i++)
		r->alpha_rule = fmax(r->alpha_rule, ratio(heading, behind(path, heading, share_of(path, i))));
	step = ceil((double)resolution_ns * (double)path->capacity_bit_s[path->links - 1] /
		    4e9); /* 2 R c / 8, R in ns */
	r->step_min = step < 1 ? 1 : step > UINT32_MAX ? UINT32_MAX : (uint32_t)step;
	r->size1 = PPT_TRAILING_MIN;
	/* A difference of a billionth of a byte is rounding. */
	r->size2 = (uint32_t)(fmax(0, fmin(r->trailing_max_bytes, heading - 1)) + 1e-9);
	r->largest_undispersed = largest_undispersed(path, heading, cross);
	if (r->size2 > r->largest_undispersed)
		r->size2 = r->largest_undispersed;
	r->resolvable =
		r->size2 > r->size1 && r->size2 - r->size1 >= r->step_min && r->size2 - r->size1 >= PPT_SIZES_APART;
	return 0;
}
