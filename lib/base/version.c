/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <ktrxer.h>

const char *ktrxer_version(void)
{
	return KTRXER_VERSION;
}
