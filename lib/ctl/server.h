// Control: the socket at which `ktrace ctl` gives its orders. A thread of its own reads them and writes the answers;
// the tracing thread, whose wait it ends by a signal, carries them out between two stops.
//
// Invariants: no client can keep the tracing thread waiting: it takes whole orders and hands over whole answers; the
// cost of a client is bounded (bytes, time, number of clients at once), also of one that sends nonsense or nothing; the
// hit path looks at one atomic flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "ctl/wire.h"
#include "os/self/local_socket.h"

namespace ktrace::ctl {

class Control {
  public:
    /// Starts listening; the calling thread is the one that will take the orders: SIGALRM ends its waits. Errors: those
    /// of LocalListener::open.
    static Result<std::unique_ptr<Control>> open();
    ~Control();
    Control(const Control &) = delete;

    /// True where an order waits: cheap enough to be asked at every stop.
    bool has_orders() const { return waiting_.load(std::memory_order_relaxed); }

    struct Request {
        std::uint64_t client = 0;
        std::vector<std::string> words;
    };
    std::optional<Request> take();
    void answer(std::uint64_t client, const Answer &answer);

  private:
    struct Client {
        Fd fd;
        std::string in, out;
        std::size_t told = 0; // bytes of `out`
        bool ordered = false; // its order is being carried out
        std::uint64_t since_ns = 0;
    };

    Control(os::LocalListener listener, Fd bell);
    void serve();
    void welcome();
    void hear(std::uint64_t id, Client &client);
    void hand_answers_out();
    bool tell(Client &client) const;
    void drop_silent();
    void ring() const;

    os::LocalListener listener_;
    Fd bell_; // an eventfd: answers are there, or the end has come
    std::function<void()> wake_tracer_;
    std::map<std::uint64_t, Client> clients_; // of the thread
    std::uint64_t last_client_ = 0;

    std::mutex mutex_; // of what follows
    std::vector<Request> requests_;
    std::vector<std::pair<std::uint64_t, std::string>> answers_;
    std::atomic<bool> waiting_ = false;
    std::atomic<bool> ending_ = false;

    std::thread thread_;
};

} // namespace ktrace::ctl
