#include <zkasio/detail/client/stop_when.hpp>

#include <asio/error.hpp>
#include <asio/post.hpp>

namespace zkasio::detail {
namespace {

struct stop_order {
    std::shared_ptr<body_run> run;
    std::function<bool(const reply&)> really;
};

// deliver() runs on the client's strand; the body runs on its own strand. (A std::function itself may have no room in a
// receiver: that of LLVM's library has to be aligned to 16 bytes.)
class stopper {
public:
    explicit stopper(std::shared_ptr<const stop_order> order) : order_(std::move(order)) {}
    void deliver(reply&& r) noexcept {
        const bool body_has_ended = r.code == asio::error::operation_aborted;
        if (!body_has_ended && order_->really(r)) body_run::cancel(order_->run);
    }

private:
    std::shared_ptr<const stop_order> order_;
};

}  // namespace

disarm_function stop_when(std::shared_ptr<core> c, one_shot_ptr on, std::shared_ptr<body_run> run,
                          std::function<bool(const reply&)> really) {
    const op_id id = c->next_id();
    const auto order = std::make_shared<const stop_order>(stop_order{std::move(run), std::move(really)});
    asio::post(c->strand(), [c, on, id, order] { c->waits().wait(id, on, receiver(stopper(order))); });
    return [c, id] { asio::post(c->strand(), [c, id] { c->cancel(id); }); };
}

}  // namespace zkasio::detail
