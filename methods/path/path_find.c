/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "path_find.h"

int path_find(struct ktrxer_path *path, const char *device, const struct ktrxer_addr *from,
	      const struct ktrxer_addr *to, bool with_mac, struct ktrxer_error *err)
{
	struct ktrxer_path_options options = KTRXER_PATH_OPTIONS_INIT;

	options.device = device;
	options.from = *from;
	options.to = *to;
	options.no_link_address = !with_mac;
	return ktrxer_path_resolve(path, &options, err);
}
