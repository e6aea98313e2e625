// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/client/daemon/fake_daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/unit/client/daemon/fake_connection.h"

namespace rocegw::testing {

void SendMessage(int socket, const std::vector<uint8_t>& bytes, int fd) {
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  // The client may be gone already; the test notices that elsewhere.
  (void)!sendmsg(socket, &header, MSG_NOSIGNAL);
}

FakeDaemon::FakeDaemon(FakeOptions options) : options_(std::move(options)) {
  char directory[] = "/tmp/rocegw-fake.XXXXXX";
  if (mkdtemp(directory) == nullptr) testing::Die("mkdtemp");
  directory_ = directory;
  path_ = options_.socket_path.empty() ? directory_ + "/attach.sock" : options_.socket_path;
  if (options_.sysfs) {
    for (uint32_t i = 0; i < options_.devices; ++i) {
      const std::string device = directory_ + "/sys/class/infiniband/rocegw" + std::to_string(i);
      std::filesystem::create_directories(device);
      std::ofstream(device + "/board_id") << "rocegw\n";
    }
  }
  unlink(path_.c_str());
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path_.c_str());
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 16) != 0) {
    testing::Die("listen");
  }
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

FakeDaemon::~FakeDaemon() {
  Die();
  unlink(path_.c_str());
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void FakeDaemon::Die() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof one);
  thread_.join();
  CloseAll();
}

void FakeDaemon::CloseAll() {
  const std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    if (connection->socket >= 0) close(connection->socket);
    for (const int fd : connection->wake_fds) close(fd);
    for (FakeChunk& chunk : connection->chunks) {
      if (chunk.base != nullptr) munmap(chunk.base, chunk.size);
      if (chunk.fd >= 0) close(chunk.fd);
    }
  }
  connections_.clear();
  while (!regions_.empty()) DestroyRegion(regions_.begin()->first);
  for (const auto& [handle, fd] : events_) close(fd);
  events_.clear();
  close(listener_);
  close(stop_);
}

void FakeDaemon::Run() {
  for (;;) {
    std::vector<pollfd> watched = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& connection : connections_) {
      watched.push_back({connection->socket, POLLIN, 0});
    }
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return;
    // Before new ones are accepted: `watched` numbers the current connections.
    for (size_t i = 2; i < watched.size(); ++i) {
      if (watched[i].revents != 0) Serve(*connections_[i - 2]);
    }
    if (watched[1].revents != 0) {
      auto connection = std::make_unique<Connection>();
      connection->socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      ++accepted_;
      connections_.push_back(std::move(connection));
    }
  }
}

void FakeDaemon::HoldAnswers(size_t count) {
  const std::lock_guard lock(mutex_);
  hold_ = count;
}

void FakeDaemon::Serve(Connection& connection) {
  std::vector<uint8_t> buffer(ROCEGW_MESSAGE_MAX + 1);
  iovec part = {buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const std::lock_guard lock(mutex_);
  const ssize_t got = recvmsg(connection.socket, &header, MSG_CMSG_CLOEXEC);
  if (got <= 0) {
    close(connection.socket);
    connection.socket = -1;  // poll ignores it
    ++hangups_;
    changed_.notify_all();
    return;
  }
  RecordedRequest request;
  request.bytes.assign(buffer.begin(), buffer.begin() + got);
  const auto head = request.As<rocegw_request>();
  request.type = head.type;
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr) {
    request.had_descriptor = true;
    int fd;
    memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    close(fd);
  }
  requests_.push_back(request);
  int fd = -1;
  std::vector<uint8_t> reply;
  if (const auto failure = failures_.find(request.type); failure != failures_.end()) {
    rocegw_reply refused{};
    refused.error = failure->second;
    reply = Bytes(refused);
  } else if (const auto answer = answers_.find(request.type); answer != answers_.end()) {
    reply = answer->second(request);
  } else {
    reply = Respond(connection, request, &fd);
  }
  auto* answer_head = reinterpret_cast<rocegw_reply*>(reply.data());
  answer_head->type = request.type;
  answer_head->length = static_cast<uint32_t>(reply.size());
  answer_head->request_id = head.request_id;
  if (head.request_id != 0 && hold_ != 0) {
    held_.push_back({connection.socket, reply});
    if (held_.size() == hold_) {
      for (const HeldAnswer& held : held_) SendMessage(held.socket, held.bytes, -1);
      held_.clear();
      hold_ = 0;
    }
  } else if (head.request_id != 0) {
    SendMessage(connection.socket, reply, fd);
  }
  if (fd >= 0) close(fd);
  changed_.notify_all();
}

}  // namespace rocegw::testing
