// Waking: ends the waits of the thread that starts it, again and again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ktrace::upgrade {

class Waking {
  public:
    explicit Waking(std::uint64_t every_ns) : every_ns_(every_ns) {}
    ~Waking();
    Waking(const Waking &) = delete;

    /// From the first call on.
    void start();

  private:
    std::uint64_t every_ns_;
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
};

} // namespace ktrace::upgrade
