// A Unix socket in a directory of the user's own: its name is the number of a process and of its pid namespace (several
// containers may share the directory), no other user may open it, and each end knows the other.
//
// Invariants: the directory belongs to this user, and no other has any right on it: no other user can take a name in
// there; sockets do not survive exec and never block.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace ktrace::os {

/// A listening socket; its name goes with it.
class LocalListener {
  public:
    /// `program` names the directory: $XDG_RUNTIME_DIR/PROGRAM, or /tmp/PROGRAM-UID. The socket is called after this
    /// process. The remains of ended processes there are taken away. Errors: denied (the directory is another user's),
    /// system.
    static Result<LocalListener> open(const std::string &program);
    ~LocalListener();
    LocalListener(LocalListener &&) noexcept;
    LocalListener &operator=(LocalListener &&) = delete;

    int fd() const { return fd_.get(); }
    /// The next client, where that is this user or root; nothing: none waits, or it was another user's.
    std::optional<Fd> accept() const;

  private:
    LocalListener(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
    Fd fd_;
    std::string path_;
};

/// Connects to the listener of a process, wherever the user of that process may have it. Errors: not_found (it has
/// none), denied (it may not be used by this user), system.
Result<Fd> connect_local(const std::string &program, Pid server);

} // namespace ktrace::os
