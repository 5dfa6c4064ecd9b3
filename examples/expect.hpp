#pragma once

// What the programs beside it have in common: they end with an error when something is not as they say.

#include <exception>
#include <stdexcept>
#include <string>

inline void rethrow(std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
}

inline void expect(bool what, const char* text) {
    if (!what) throw std::runtime_error(std::string("not as expected: ") + text);
}
