// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/tls_probe.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "gateway/base/unique_fd.h"

namespace rocegw::cli {
namespace {

using Deadline = std::chrono::steady_clock::time_point;
using Context = std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, FreedBy<SSL_free>>;
using Addresses = std::unique_ptr<addrinfo, FreedBy<freeaddrinfo>>;

// HTTP/2, without which gRPC servers abort the handshake.
constexpr std::array<unsigned char, 3> kProtocol = {2, 'h', '2'};

Status Failure(const std::string& what) { return {errno, what + ": " + std::strerror(errno)}; }

// Returns false if the deadline has passed.
bool Await(int fd, short events, Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd one{fd, events, 0};
  errno = ETIMEDOUT;
  return left.count() > 0 && poll(&one, 1, static_cast<int>(left.count())) == 1;
}

StatusOr<UniqueFd> Connect(const std::string& address, Deadline deadline) {
  const std::string host = HostOf(address);
  const std::string port = address.substr(address.rfind(':') + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list); error != 0)
    return Status(EHOSTUNREACH, host + ": " + gai_strerror(error));
  const Addresses found(list);
  Status last(EHOSTUNREACH, host + " has no address");
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd.get() < 0) return Failure("socket");
    if (connect(fd.get(), one->ai_addr, one->ai_addrlen) != 0) {
      int error = errno;
      socklen_t size = sizeof error;
      if (error == EINPROGRESS && Await(fd.get(), POLLOUT, deadline))
        getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        errno = error == EINPROGRESS ? ETIMEDOUT : error;
        last = Failure("connect to " + address);
        continue;
      }
    }
    return fd;
  }
  return last;
}

// Sends the handshake's output and reads a part of the server's input. Not by OpenSSL itself, whose
// writes to a closed connection would raise SIGPIPE.
Status Exchange(int fd, BIO& in, BIO& out, Deadline deadline) {
  std::array<char, 4096> bytes;
  for (int size = BIO_read(&out, bytes.data(), bytes.size()); size > 0;
       size = BIO_read(&out, bytes.data(), bytes.size())) {
    for (int sent = 0; sent < size;) {
      const ssize_t count =
          send(fd, bytes.data() + sent, static_cast<size_t>(size - sent), MSG_NOSIGNAL);
      if (count < 0 && (errno != EAGAIN || !Await(fd, POLLOUT, deadline))) return Failure("send");
      if (count > 0) sent += static_cast<int>(count);
    }
  }
  if (!Await(fd, POLLIN, deadline)) return Failure("no answer");
  const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
  if (count == 0) return {ECONNRESET, "the connection was closed in the handshake"};
  if (count < 0) return Failure("receive");
  BIO_write(&in, bytes.data(), static_cast<int>(count));
  return OkStatus();
}

}  // namespace

std::string HostOf(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return host;
}

StatusOr<identity::X509Certificate> CertificateShownBy(const std::string& address,
                                                       const std::string& server_name,
                                                       std::chrono::milliseconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  auto fd = Connect(address, deadline);
  if (!fd.ok()) return fd.status();
  const Context context(SSL_CTX_new(TLS_client_method()));
  const Session session(context == nullptr ? nullptr : SSL_new(context.get()));
  if (session == nullptr) return identity::OpensslError("TLS");
  SSL_set_verify(session.get(), SSL_VERIFY_NONE, nullptr);
  SSL_set_alpn_protos(session.get(), kProtocol.data(), kProtocol.size());
  SSL_set_tlsext_host_name(session.get(), server_name.c_str());
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), in, out);  // takes ownership
  for (;;) {
    const int result = SSL_connect(session.get());
    identity::X509Certificate shown(SSL_get1_peer_certificate(session.get()));
    // The certificate arrives before the handshake ends, which the server may refuse.
    if (shown != nullptr) return shown;
    if (result == 1) return Status(EPROTO, "the server shows no certificate");
    if (SSL_get_error(session.get(), result) != SSL_ERROR_WANT_READ)
      return identity::OpensslError("TLS handshake");
    if (Status status = Exchange(fd->get(), *in, *out, deadline); !status.ok()) return status;
  }
}

}  // namespace rocegw::cli
