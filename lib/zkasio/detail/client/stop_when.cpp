#include <zkasio/detail/client/stop_when.hpp>

#include <asio/error.hpp>
#include <asio/post.hpp>

namespace zkasio::detail {
namespace {

// deliver() runs on the client's strand; the body runs on its own strand.
class stopper {
public:
    stopper(std::shared_ptr<body_run> run, std::function<bool(const reply&)> really)
        : run_(std::move(run)), really_(std::move(really)) {}
    void deliver(reply&& r) noexcept {
        const bool body_has_ended = r.code == asio::error::operation_aborted;
        if (!body_has_ended && really_(r)) body_run::cancel(run_);
    }

private:
    std::shared_ptr<body_run> run_;
    std::function<bool(const reply&)> really_;
};

}  // namespace

disarm_function stop_when(std::shared_ptr<core> c, one_shot_ptr on, std::shared_ptr<body_run> run,
                          std::function<bool(const reply&)> really) {
    const op_id id = c->next_id();
    asio::post(c->strand(), [c, on, id, run = std::move(run), really = std::move(really)] {
        c->waits().wait(id, on, receiver(stopper(run, really)));
    });
    return [c, id] { asio::post(c->strand(), [c, id] { c->cancel(id); }); };
}

}  // namespace zkasio::detail
