#include "ctl/server.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "os/self/own_signals.h"

namespace ktrace::ctl {

namespace {

constexpr std::size_t most_clients = 64;
constexpr std::uint64_t patience_ns = 10'000'000'000; // until a client has given its order, or taken its answer
constexpr int wake_every_ms = 2;                      // while an order waits: a signal may come before the wait begins
constexpr int look_every_ms = 1000;                   // at clients that say nothing

} // namespace

Result<std::unique_ptr<Control>> Control::open() {
    auto listener = os::LocalListener::open("ktrace");
    if (!listener) return fail(listener.error());
    Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell) return fail(Error::Kind::system, "no eventfd can be had");
    std::unique_ptr<Control> control(new Control(std::move(*listener), std::move(bell)));
    if (!control->thread_.joinable()) return fail(Error::Kind::system, "no thread can be had");
    return control;
}

Control::Control(os::LocalListener listener, Fd bell)
    : listener_(std::move(listener)), bell_(std::move(bell)), wake_tracer_(os::OwnSignals::waker()) {
    try {
        thread_ = start_quiet_thread([this] { serve(); });
    } catch (const std::system_error &) { // none is to be had
    }
}

Control::~Control() {
    ending_ = true;
    ring();
    if (thread_.joinable()) thread_.join();
}

void Control::ring() const {
    std::uint64_t one = 1;
    static_cast<void>(!::write(bell_.get(), &one, sizeof one));
}

std::optional<Control::Request> Control::take() {
    std::lock_guard lock(mutex_);
    if (requests_.empty()) return std::nullopt;
    Request request = std::move(requests_.front());
    requests_.erase(requests_.begin());
    if (requests_.empty()) waiting_ = false;
    return request;
}

void Control::answer(std::uint64_t client, const Answer &answer) {
    {
        std::lock_guard lock(mutex_);
        answers_.emplace_back(client, write_answer(answer));
    }
    ring();
}

void Control::serve() {
    while (!ending_) {
        if (has_orders()) wake_tracer_();
        std::vector<pollfd> waits{{bell_.get(), POLLIN, 0}};
        bool full = clients_.size() >= most_clients;
        waits.push_back({full ? -1 : listener_.fd(), POLLIN, 0});
        std::vector<std::uint64_t> ids;
        for (const auto &[id, client] : clients_) {
            short events = client.ordered ? 0 : POLLIN;
            if (!client.out.empty()) events = POLLOUT;
            // Nothing is expected of one whose order is being done; one that goes away meanwhile would make us turn.
            waits.push_back({client.ordered && client.out.empty() ? -1 : client.fd.get(), events, 0});
            ids.push_back(id);
        }
        ::poll(waits.data(), waits.size(), has_orders() ? wake_every_ms : look_every_ms);
        if (waits[0].revents) hand_answers_out();
        if (waits[1].revents) welcome();
        for (std::size_t i = 0; i < ids.size(); i++) {
            auto found = clients_.find(ids[i]);
            if (found == clients_.end() || waits[i + 2].revents == 0) continue;
            if (!found->second.out.empty()) {
                if (!tell(found->second)) clients_.erase(found);
            } else {
                hear(ids[i], found->second);
            }
        }
        drop_silent();
    }
}

void Control::welcome() {
    auto fd = listener_.accept();
    if (!fd) return;
    Client &client = clients_[++last_client_];
    client.fd = std::move(*fd);
    client.since_ns = monotonic_ns();
}

/// Reads what has come. A client that is not understood gets an answer that says so, and goes.
void Control::hear(std::uint64_t id, Client &client) {
    char bytes[16384];
    ssize_t got = ::recv(client.fd.get(), bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        clients_.erase(id);
        return;
    }
    client.in.append(bytes, static_cast<std::size_t>(got));
    auto order = read_order(client.in);
    if (!order) {
        client.ordered = true;
        client.out = write_answer({1, {}, "ktrace: " + order.error().message + "; " + order.error().hint + "\n"});
        return;
    }
    if (!*order) return;
    client.ordered = true;
    client.in.clear();
    std::lock_guard lock(mutex_);
    requests_.push_back({id, std::move(**order)});
    waiting_ = true;
}

void Control::hand_answers_out() {
    std::uint64_t count = 0;
    static_cast<void>(!::read(bell_.get(), &count, sizeof count));
    std::lock_guard lock(mutex_);
    for (auto &[id, text] : answers_) {
        auto found = clients_.find(id);
        if (found == clients_.end()) continue;
        found->second.out = std::move(text);
        found->second.since_ns = monotonic_ns();
    }
    answers_.clear();
}

/// Writes as much of the answer as the client takes. False: it has all of it, or is gone.
bool Control::tell(Client &client) const {
    std::string_view rest = std::string_view(client.out).substr(client.told);
    ssize_t sent = ::send(client.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    client.since_ns = monotonic_ns();
    client.told += static_cast<std::size_t>(sent);
    return client.told < client.out.size();
}

void Control::drop_silent() {
    std::uint64_t now = monotonic_ns();
    std::erase_if(clients_, [now](const auto &entry) {
        const Client &client = entry.second;
        bool waits_for_us = client.ordered && client.out.empty();
        return !waits_for_us && now - client.since_ns > patience_ns;
    });
}

} // namespace ktrace::ctl
