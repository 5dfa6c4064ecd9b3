#include <zkasio/detail/requests/validate.hpp>

#include <zkasio/path.hpp>

namespace zkasio::detail {
namespace {

class validator {
public:
    validator(std::string_view operation, bool has_chroot, std::size_t checks = 0)
        : operation_(operation), has_chroot_(has_chroot), checks_(checks) {}

    void operator()(const create_request& r) const {
        // Java checks the name that a sequential node will have.
        path(is_sequential(r.mode) ? r.path + "0" : r.path, r.path);
        writable(r.path);
        acl(r.acl, r.path);
        if (r.mode > create_mode::persistent_sequential_ttl)
            refuse(errc::invalid_argument, r.path, "there is no such create_mode");
        constexpr std::chrono::milliseconds longest(0xffffffffffLL);
        if (has_ttl(r.mode) && (r.ttl.count() <= 0 || r.ttl > longest))
            refuse(errc::invalid_argument, r.path, "a time to live is from 1 to 1099511627775 ms");
        if (!has_ttl(r.mode) && r.ttl.count() != 0)
            refuse(errc::invalid_argument, r.path, "only the modes with a time to live take a ttl");
    }
    void operator()(const set_request& r) const {
        path(r.path, r.path);
        writable(r.path);
        version(r.version, r.path);
    }
    void operator()(const remove_request& r) const {
        path(r.path, r.path);
        writable(r.path);
        version(r.version, r.path);
        if (r.path == "/") refuse(errc::invalid_argument, r.path, "the root cannot be removed");
    }
    void operator()(const check_op& r) const {
        path(r.path, r.path);
        version(r.version, r.path);
    }
    void operator()(const set_acl_request& r) const {
        path(r.path, r.path);
        acl(r.acl, r.path);
        version(r.version, r.path);
    }
    void operator()(const multi_request& r) const {
        for (std::size_t i = 0; i < r.ops.size(); ++i) {
            std::string name(operation_);
            if (i >= checks_) name += " (step " + std::to_string(i + 1 - checks_) + ")";
            const validator step(name, has_chroot_);
            std::visit(step, r.ops[i]);
            if (const auto* c = std::get_if<create_request>(&r.ops[i]);
                c && (c->mode == create_mode::container || has_ttl(c->mode)))
                step.refuse(errc::invalid_argument, c->path,
                            "containers and times to live are not possible in a transaction");
        }
    }
    void operator()(const multi_read_request& r) const {
        for (std::size_t i = 0; i < r.reads.size(); ++i) {
            const std::string name = std::string(operation_) + " (read " + std::to_string(i + 1) + ")";
            std::visit(validator(name, has_chroot_), r.reads[i]);
        }
    }
    void operator()(const who_am_i_request&) const {}
    void operator()(const add_auth_request& r) const {
        if (r.scheme.empty() || r.scheme.find('\0') != std::string::npos)
            refuse(errc::invalid_argument, {}, "the scheme is empty, or has a NUL");
    }
    void operator()(const get_config_request&) const {}
    void operator()(const reconfig_request& r) const {
        if (r.joining.empty() && r.leaving.empty() && r.members.empty())
            refuse(errc::invalid_argument, {}, "nothing joins, nothing leaves, and no members are given");
        if (!r.members.empty() && !(r.joining.empty() && r.leaving.empty()))
            refuse(errc::invalid_argument, {}, "give either members, or what joins and leaves");
    }
    template <class Other>
    void operator()(const Other& r) const {
        path(r.path, r.path);
    }

    [[noreturn]] void refuse(std::error_code code, std::string_view path, std::string_view why) const {
        throw error(code, operation_, path, why);
    }

    void path(std::string_view checked, std::string_view shown) const {
        if (const std::string problem = path_problem(checked); !problem.empty())
            refuse(errc::invalid_path, shown, problem);
    }
    void size(std::size_t bytes, std::string_view path) const {
        if (bytes > max_request_bytes)
            refuse(errc::too_large, path,
                   std::to_string(bytes) + " bytes, and a server accepts " + std::to_string(max_request_bytes));
    }

private:
    void writable(std::string_view path) const {
        // Quotas are set by writing nodes there.
        if (!has_chroot_ && belongs_to_servers(path) && !path.starts_with("/zookeeper/quota/"))
            refuse(errc::invalid_path, path, "/zookeeper belongs to the server");
    }
    void version(std::int32_t v, std::string_view path) const {
        if (v < any_version) refuse(errc::invalid_argument, path, "a version is not negative (-1: any version)");
    }
    void acl(const zkasio::acl& entries, std::string_view path) const {
        if (entries.empty()) refuse(zk_errc::invalid_acl, path, "the ACL is empty");
        if (has_default(entries))
            refuse(zk_errc::invalid_acl, path, "default_acl() stands for a client's ACL, and is changed by nobody");
        for (const acl_entry& e : entries)
            if (e.who().scheme().find('\0') != std::string::npos || e.who().id().find('\0') != std::string::npos)
                refuse(zk_errc::invalid_acl, path, "NUL in an ACL id");
    }

    std::string_view operation_;
    bool has_chroot_;
    std::size_t checks_;
};

}  // namespace

void validate_path(std::string_view path, std::size_t chroot_length, std::string_view operation) {
    const validator v(operation, chroot_length > 0);
    v.path(path, path);
    v.size(exists_request().size() + path.size() + chroot_length, path);
}

void validate(const request& r, std::size_t chroot_length, std::string_view operation, std::size_t checks) {
    const validator v(operation.empty() ? operation_name(r) : operation, chroot_length > 0, checks);
    std::visit(v, r);
    const auto* const multi = std::get_if<multi_request>(&r);
    const auto* const reads = std::get_if<multi_read_request>(&r);
    const std::size_t paths = multi ? multi->ops.size() : reads ? reads->reads.size() : 1;
    v.size(encoded_size(r) + paths * chroot_length, path_of(r));
}

}  // namespace zkasio::detail
