// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/storage_io/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <list>
#include <vector>

#include "tests/interop/storage_io/load.h"
#include "tests/interop/storage_io/messages.h"
#include "tests/interop/storage_io/rdma_link.h"
#include "tests/interop/storage_io/volume.h"

namespace rocegw::storage_io {
namespace {

constexpr size_t kReceiveBytes = 1 << 20;

// A socket with what was read and not used yet, and what is to be written. Owns the descriptor.
class Stream {
 public:
  explicit Stream(int fd) : fd_(fd), in_(kReceiveBytes) {
    const int on = 1;
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) Die("fcntl");
  }
  ~Stream() { ::close(fd_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool ended() const { return ended_; }

  void Fill() {
    if (from_ > 0) std::memmove(in_.data(), &in_[from_], to_ - from_);
    to_ -= from_;
    from_ = 0;
    const ssize_t got = ::recv(fd_, &in_[to_], in_.size() - to_, 0);
    if (got > 0) {
      to_ += static_cast<size_t>(got);
    } else if (got == 0 || errno != EAGAIN) {
      ended_ = true;
    }
  }
  // Returns nullptr while fewer bytes are there.
  const uint8_t* Peek(size_t bytes) const { return to_ - from_ >= bytes ? &in_[from_] : nullptr; }
  void Drop(size_t bytes) { from_ += bytes; }

  // Returns the place of that many bytes to be written.
  uint8_t* Append(size_t bytes) {
    out_.resize(out_.size() + bytes);
    return &out_[out_.size() - bytes];
  }
  void Flush() {
    if (out_.empty()) return;
    const ssize_t sent = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out_.erase(out_.begin(), out_.begin() + sent);
    } else if (errno != EAGAIN) {
      ended_ = true;
    }
  }

 private:
  const int fd_;
  std::vector<uint8_t> in_;
  std::vector<uint8_t> out_;
  size_t from_ = 0;
  size_t to_ = 0;
  bool ended_ = false;
};

sockaddr_in AddressOf(const Options& options) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options.port);
  if (::inet_pton(AF_INET, options.address.c_str(), &address.sin_addr) != 1) Die("address");
  return address;
}

void ServeCommands(Stream& stream, Volume& volume) {
  stream.Fill();
  while (const uint8_t* const at = stream.Peek(sizeof(Command))) {
    Command command;
    std::memcpy(&command, at, sizeof command);
    const bool known = volume.Has(command.block, command.bytes);
    const bool read = command.operation == Operation::kRead;
    const size_t data = known && !read ? command.bytes : 0;
    if (stream.Peek(sizeof command + data) == nullptr) break;
    bool ok = known;
    if (data > 0) ok = volume.Write(command.block, at + sizeof command);
    stream.Drop(sizeof command + data);
    const Response response = {command.slot, ok ? 0U : 1U, 0};
    std::memcpy(stream.Append(sizeof response), &response, sizeof response);
    if (ok && read) volume.Read(command.block, stream.Append(command.bytes));
  }
  stream.Flush();
}

void BeginRequest(Load& load, uint32_t slot, Stream& stream) {
  const Command command = load.Begin(slot);
  std::memcpy(stream.Append(sizeof command), &command, sizeof command);
  if (command.operation == Operation::kWrite)
    std::memcpy(stream.Append(command.bytes), load.BlockOf(slot), command.bytes);
}

}  // namespace

int RunTcpTarget(const Options& options, const volatile std::sig_atomic_t* stop) {
  Volume volume(options.block_bytes, options.verify);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  const sockaddr_in address = AddressOf(options);
  (void)::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 16) != 0) {
    Die("listen");
  }
  std::printf("listening\n");
  std::list<Stream> streams;
  while (*stop == 0) {
    if (const int fd = ::accept(listener, nullptr, nullptr); fd >= 0) streams.emplace_back(fd);
    for (int i = 0; i < 256; ++i)
      for (Stream& stream : streams) ServeCommands(stream, volume);
    streams.remove_if([](const Stream& stream) { return stream.ended(); });
  }
  ::close(listener);
  return 0;
}

int RunTcpInitiator(const Options& options, const volatile std::sig_atomic_t* stop) {
  Load load(options);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = AddressOf(options);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    Die("connect");
  Stream stream(fd);
  uint32_t outstanding = 0;
  const auto begin = [&](uint32_t slot) {
    BeginRequest(load, slot, stream);
    ++outstanding;
  };
  for (uint32_t slot = 0; slot < load.depth(); ++slot) begin(slot);
  while (*stop == 0 && !stream.ended() && outstanding > 0) {
    stream.Flush();
    stream.Fill();
    while (const uint8_t* const at = stream.Peek(sizeof(Response))) {
      Response response;
      std::memcpy(&response, at, sizeof response);
      const size_t data = load.BytesToCome(response.slot);
      if (stream.Peek(sizeof response + data) == nullptr) break;
      std::memcpy(load.BlockOf(response.slot), at + sizeof response, data);
      stream.Drop(sizeof response + data);
      load.End(response.slot, response.failed != 0);
      --outstanding;
      if (!load.over()) begin(response.slot);
    }
  }
  if (stream.ended()) Die("the target ended the connection");
  return load.Report() ? 0 : 1;
}

}  // namespace rocegw::storage_io
