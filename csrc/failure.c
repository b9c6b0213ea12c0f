#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(struct failure *failure, enum failure_kind kind, const char *format, va_list args)
{
	failure->kind = kind;
	failure->errnum = 0;
	failure->capability[0] = failure->stage[0] = failure->remedy[0] = '\0';
	vsnprintf(failure->message, sizeof failure->message, format, args);
}

void failure_set_policy(struct failure *failure, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(failure, FAILURE_POLICY, format, args);
	va_end(args);
}

void failure_set_unavailable(struct failure *failure, const char *capability, const char *remedy,
                             const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(failure, FAILURE_UNAVAILABLE, format, args);
	va_end(args);
	snprintf(failure->capability, sizeof failure->capability, "%s", capability);
	snprintf(failure->remedy, sizeof failure->remedy, "%s", remedy);
}

void failure_set_execution(struct failure *failure, const char *stage, int errnum,
                           const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(failure, FAILURE_EXECUTION, format, args);
	va_end(args);
	snprintf(failure->stage, sizeof failure->stage, "%s", stage);
	failure->errnum = errnum;
}

void failure_set_memory(struct failure *failure)
{
	failure->kind = FAILURE_MEMORY;
	failure->errnum = 0;
	failure->capability[0] = failure->stage[0] = failure->remedy[0] = '\0';
	snprintf(failure->message, sizeof failure->message, "not enough memory");
}
