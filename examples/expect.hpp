#pragma once

// What the programs beside it have in common: they end with an error when something is not as they say.

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

inline void rethrow(std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
}

/// The whole of main(). @param all gets the servers that the command line names.
inline int run_example(int argc, char** argv, void (*all)(std::string servers)) {
    try {
        all(argc > 1 ? argv[1] : "127.0.0.1:2181");
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
    return 0;
}

inline void expect(bool what, const char* text) {
    if (!what) throw std::runtime_error(std::string("not as expected: ") + text);
}
