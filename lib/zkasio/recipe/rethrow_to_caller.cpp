#include <zkasio/recipe/rethrow_to_caller.hpp>

#include <zkasio/error.hpp>

namespace zkasio {

void rethrow_to_caller(const std::exception_ptr& why, std::string_view operation, std::string_view path) {
    try {
        std::rethrow_exception(why);
    } catch (const error& e) {
        const std::error_code code = e.code() == condition::cancelled ? errc::client_closed : e.code();
        throw error(code, e.operation(), e.path(), e.hint(), e.outcome_unknown());
    } catch (const std::system_error& e) {  // of a pause
        if (e.code() != condition::cancelled) throw;
        throw error(errc::client_closed, operation, path);
    }
}

}  // namespace zkasio
