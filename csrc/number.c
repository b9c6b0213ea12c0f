#include "number.h"

bool number_to_seconds(lua_State *L, int index, double *out)
{
	double value;

	if (lua_type(L, index) != LUA_TNUMBER)
		return false;
	value = lua_tonumber(L, index);
	/* The comparisons are false for NaN; what is above 2^53 seconds is as good as infinite. */
	if (!(value >= 0 && value <= (double)NUMBER_MAX))
		return false;
	*out = value;
	return true;
}

bool number_to_u64(lua_State *L, int index, uint64_t *out)
{
	double value;

	if (!number_to_seconds(L, index, &value) || (double)(uint64_t)value != value)
		return false;
	*out = (uint64_t)value;
	return true;
}
