#include "sqlite.hpp"

#include <sqlite3.h>

#include <stdexcept>

namespace order_server {

namespace {

constexpr int busy_timeout_ms = 5'000;  // for as long as another process writes

[[noreturn]] void fail(sqlite3* database, std::string_view doing) {
    throw store_error("sqlite: " + std::string(doing) + ": " + ::sqlite3_errmsg(database));
}

}  // namespace

database::database(const std::string& file) {
    // The store uses it on one thread at a time, but not always on the same.
    const int how = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    if (::sqlite3_open_v2(file.c_str(), &handle_, how, nullptr) != SQLITE_OK) {
        const std::string why = handle_ ? ::sqlite3_errmsg(handle_) : "no memory";
        ::sqlite3_close(handle_);
        throw store_error("sqlite: open " + file + ": " + why);
    }
    ::sqlite3_busy_timeout(handle_, busy_timeout_ms);
}

database::~database() { ::sqlite3_close(handle_); }

void database::execute(const char* sql) {
    if (::sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(handle_, sql);
}

int database::changes() const noexcept { return ::sqlite3_changes(handle_); }

statement::statement(database& in, const char* sql) : in_(in) {
    if (::sqlite3_prepare_v2(in.handle(), sql, -1, &handle_, nullptr) != SQLITE_OK) fail(in.handle(), sql);
}

statement::~statement() { ::sqlite3_finalize(handle_); }

int statement::index(const char* name) const {
    const int at = ::sqlite3_bind_parameter_index(handle_, name);
    if (at == 0) throw std::logic_error(std::string("no parameter ") + name);
    return at;
}

statement& statement::bind(const char* name, std::int64_t value) {
    if (::sqlite3_bind_int64(handle_, index(name), value) != SQLITE_OK) fail(in_.handle(), name);
    return *this;
}

statement& statement::bind(const char* name, std::string_view value) {
    const auto size = static_cast<int>(value.size());
    if (::sqlite3_bind_text(handle_, index(name), value.data(), size, SQLITE_STATIC) != SQLITE_OK)
        fail(in_.handle(), name);
    return *this;
}

bool statement::step() {
    const int said = ::sqlite3_step(handle_);
    if (said != SQLITE_ROW && said != SQLITE_DONE) fail(in_.handle(), ::sqlite3_sql(handle_));
    return said == SQLITE_ROW;
}

std::int64_t statement::integer(int column) const { return ::sqlite3_column_int64(handle_, column); }

std::string statement::text(int column) const {
    const auto* const bytes = reinterpret_cast<const char*>(::sqlite3_column_text(handle_, column));
    return bytes ? std::string(bytes, static_cast<std::size_t>(::sqlite3_column_bytes(handle_, column)))
                 : std::string();
}

write_transaction::~write_transaction() {
    if (open_) ::sqlite3_exec(in_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void write_transaction::commit() {
    in_.execute("COMMIT");
    open_ = false;
}

}  // namespace order_server
