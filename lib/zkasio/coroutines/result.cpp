#include <zkasio/coroutines/result.hpp>

#include <system_error>

namespace zkasio::detail {

result_failure current_failure() {
    try {
        throw;
    } catch (const error& e) {
        // A copy of the error loses the exception that is nested in the thrown one.
        const bool nests = dynamic_cast<const std::nested_exception*>(&e) != nullptr;
        return result_failure(e, nests ? std::current_exception() : nullptr);
    } catch (const std::system_error& e) {
        if (e.code() != condition::cancelled) throw;
        return result_failure(error(e.code(), "operation"));
    }
}

void rethrow_failure(const result_failure& f) {
    if (f.thrown) std::rethrow_exception(f.thrown);
    throw f.what;
}

const result_failure& empty_result() {
    static const result_failure empty(error(errc::invalid_argument, "result", {}, "an empty result has no value"));
    return empty;
}

void throw_has_a_value() { throw error(errc::invalid_argument, "result", {}, "error() of a result that has a value"); }

}  // namespace zkasio::detail
