#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

/// As much of SQLite as a store needs, with destructors; what fails throws a store_error. One
/// thread at a time. See order_store.
namespace order_server {

/// In SQLite's words. Another process may have written for too long.
class store_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class database {
public:
    /// Opens the file, and creates it when it is missing.
    explicit database(const std::string& file);
    database(const database&) = delete;
    database& operator=(const database&) = delete;
    ~database();

    void execute(const char* sql);
    /// Rows that the last statement has changed.
    int changes() const noexcept;
    sqlite3* handle() const noexcept { return handle_; }

private:
    sqlite3* handle_ = nullptr;
};

/// A prepared statement. What it is given has to live until it has run.
class statement {
public:
    statement(database& in, const char* sql);
    statement(const statement&) = delete;
    statement& operator=(const statement&) = delete;
    ~statement();

    /// @param name with its colon.
    statement& bind(const char* name, std::int64_t value);
    statement& bind(const char* name, std::string_view value);

    /// Goes on to the next row; false behind the last one.
    bool step();
    /// To its end.
    void run() {
        while (step()) {
        }
    }

    std::int64_t integer(int column) const;
    std::string text(int column) const;

private:
    int index(const char* name) const;

    database& in_;
    sqlite3_stmt* handle_ = nullptr;
};

/// All or nothing: rolled back unless it is committed. Nobody else writes meanwhile.
class write_transaction {
public:
    explicit write_transaction(database& in) : in_(in) { in_.execute("BEGIN IMMEDIATE"); }
    write_transaction(const write_transaction&) = delete;
    write_transaction& operator=(const write_transaction&) = delete;
    ~write_transaction();
    void commit();

private:
    database& in_;
    bool open_ = true;
};

}  // namespace order_server
