#include <cstdio>
#include <cstring>

#include "tilewright/error.h"
#include "tilewright/version.h"

int main() {
  if (std::strcmp(TILEWRIGHT_VERSION, EXPECTED_VERSION) != 0) {
    std::fprintf(stderr, "version.h says %s, the package %s\n", TILEWRIGHT_VERSION,
                 EXPECTED_VERSION);
    return 1;
  }
  try {
    throw tilewright::Error(tilewright::ErrorKind::usage, {"main.cpp", 1}, "message", "rendered");
  } catch (const tilewright::Error& error) {
    return error.message() == "message" && std::strcmp(error.what(), "rendered") == 0 ? 0 : 1;
  }
}
