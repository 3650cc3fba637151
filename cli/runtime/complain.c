/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli.h"
#include "error.h"
#include "verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

enum { COMPLAINT_MAX = 1024 };

void cli_complain(const struct cli *cli, const char *format, ...)
{
	char text[COMPLAINT_MAX];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof text, format, args) < 0)
		text[0] = '\0';
	va_end(args);
	ktrxer_text_clean(text, false);
	dprintf(STDERR_FILENO, "ktrxer %s: %s\n", cli->command->name, text);
	verdict_complaint(cli, text);
}

int cli_fail(const struct cli *cli, const struct ktrxer_error *err)
{
	cli_complain(cli, "%s", err->text);
	return err->code == -EINVAL ? EXIT_USAGE : EXIT_BAD;
}
