#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int fill(struct failure *failure, enum failure_kind kind, const char *format, va_list args)
{
	failure->kind = kind;
	failure->errnum = 0;
	failure->capability[0] = failure->stage[0] = failure->remedy[0] = '\0';
	vsnprintf(failure->message, sizeof failure->message, format, args);
	return -1;
}

int failure_policy(struct failure *failure, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(failure, FAILURE_POLICY, format, args);
	va_end(args);
	return -1;
}

int failure_unavailable(struct failure *failure, const char *capability, const char *remedy,
                        const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(failure, FAILURE_UNAVAILABLE, format, args);
	va_end(args);
	snprintf(failure->capability, sizeof failure->capability, "%s", capability);
	snprintf(failure->remedy, sizeof failure->remedy, "%s", remedy);
	return -1;
}

int failure_execution(struct failure *failure, const char *stage, int errnum, const char *format,
                      ...)
{
	va_list args;

	va_start(args, format);
	fill(failure, FAILURE_EXECUTION, format, args);
	va_end(args);
	snprintf(failure->stage, sizeof failure->stage, "%s", stage);
	failure->errnum = errnum;
	return -1;
}

int failure_memory(struct failure *failure)
{
	failure->kind = FAILURE_MEMORY;
	failure->errnum = 0;
	failure->capability[0] = failure->stage[0] = failure->remedy[0] = '\0';
	snprintf(failure->message, sizeof failure->message, "not enough memory");
	return -1;
}
