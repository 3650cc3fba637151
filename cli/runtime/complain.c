/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli.h"
#include "error.h"
#include "verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

enum { COMPLAINT_MAX = 1024 };

static void complain(const struct cli *cli, int code, const char *format, va_list args)
{
	char text[COMPLAINT_MAX];

	if (vsnprintf(text, sizeof text, format, args) < 0)
		text[0] = '\0';
	ktrxer_text_clean(text, false);
	dprintf(STDERR_FILENO, "ktrxer %s: %s\n", cli->command->name, text);
	verdict_complaint(cli, code, text);
}

void cli_complain(const struct cli *cli, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(cli, 0, format, args);
	va_end(args);
}

void cli_complain_code(const struct cli *cli, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(cli, code, format, args);
	va_end(args);
}

static int status_of(const struct ktrxer_error *err)
{
	return err->code == -EINVAL || err->code == -ENOKEY ? EXIT_USAGE : EXIT_NO_RESULT;
}

int cli_fail(const struct cli *cli, const struct ktrxer_error *err)
{
	cli_complain_code(cli, err->code, "%s", err->text);
	return status_of(err);
}

#ifndef KTRXER_SMALL
int cli_fail_advice(const struct cli *cli, const struct ktrxer_error *err, const char *format, ...)
{
	char text[COMPLAINT_MAX], advice[COMPLAINT_MAX];
	va_list args;

	va_start(args, format);
	ktrxer_text_va(advice, sizeof advice, format, args);
	va_end(args);
	ktrxer_text(text, sizeof text, "%s; %s", err->text, advice);
	ktrxer_text_clean(text, false);
	dprintf(STDERR_FILENO, "ktrxer %s: %s\n", cli->command->name, text);
	verdict_complaint(cli, err->code, err->text);
	return status_of(err);
}
#endif
