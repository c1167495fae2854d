// HONE_API marks what the shared libraries export. All else is hidden in them, so a name without it
// cannot be used through <hone/...>; inside the source tree it changes nothing.
#pragma once

#define HONE_API __attribute__((visibility("default")))
