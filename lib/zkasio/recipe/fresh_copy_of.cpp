#include <zkasio/recipe/fresh_copy_of.hpp>

#include <zkasio/error.hpp>

#include <new>
#include <system_error>

namespace zkasio {

std::exception_ptr fresh_copy_of(const std::exception_ptr& failed) {
    if (!failed) return nullptr;
    try {
        std::rethrow_exception(failed);
    } catch (const error& e) {
        return std::make_exception_ptr(error(e));
    } catch (const std::system_error& e) {
        return std::make_exception_ptr(std::system_error(e));
    } catch (const std::bad_alloc&) {
        return std::make_exception_ptr(std::bad_alloc());
    } catch (...) {
        return failed;
    }
}

}  // namespace zkasio
