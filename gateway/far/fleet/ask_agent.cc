// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/fleet/ask_agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "gateway/base/errno_status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::far {

StatusOr<std::vector<NamedDonor>> AskAgent(const std::string& folder, const DonorQuestion& question,
                                           std::chrono::seconds longest, int cancel_fd) {
  const std::string path = folder + "/" + kAgentSocket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Status(ENAMETOOLONG, path + ": too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return ErrnoStatus("socket");
  const timeval wait{longest.count(), 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  const auto end = std::chrono::steady_clock::now() + longest;
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const Status status = ErrnoStatus(path);
    return Status(status.error(), status.text() + " (the agent serves it with donors_dir)");
  }
  const std::string asked = ToText(question);
  if (send(socket.get(), asked.data(), asked.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(asked.size())) {
    return ErrnoStatus(path);
  }
  std::string answer;
  std::array<char, 4096> buffer;
  while (!IsComplete(answer)) {
    std::array<pollfd, 2> ready{{{socket.get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Status(ETIMEDOUT, path + ": no answer in time");
    if (poll(ready.data(), ready.size(), static_cast<int>(left.count())) <= 0) continue;
    if (ready[1].revents != 0) return Status(ECANCELED, "stopped");
    const ssize_t got = recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(path);
    if (got == 0) return Status(EPROTO, path + ": the agent has closed the connection");
    answer.append(buffer.data(), static_cast<size_t>(got));
    if (answer.size() > kMostText) return Status(EPROTO, path + ": the answer is too long");
  }
  return ReadAnswer(answer);
}

}  // namespace rocegw::far
