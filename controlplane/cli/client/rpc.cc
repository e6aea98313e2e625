// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/rpc.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "controlplane/cli/client/foreign_strings.h"
#include "controlplane/cli/client/rpc_error.h"

namespace rocegw::cli {
namespace {

using google::protobuf::Message;

// Exceeds a full page of the largest objects.
constexpr int kMostBytes = 64 << 20;

// Operations complete one after the other, so their tags are not examined.
void* Tag(intptr_t number) { return reinterpret_cast<void*>(number); }

grpc::ByteBuffer Bytes(const Message& message) {
  const std::string bytes = message.SerializeAsString();
  grpc::Slice slice(bytes);
  return {&slice, 1};
}

bool Parse(const grpc::ByteBuffer& buffer, Message& message) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  if (!message.ParseFromString(bytes)) return false;
  CleanStrings(message);
  return true;
}

// Returns 0, or the errno of a connection attempt.
int TryUnixSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int rc =
      fd < 0 ? -1 : connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = rc == 0 ? 0 : errno;
  if (fd >= 0) close(fd);
  return error;
}

CallResult ReadFile(const std::string& file, std::string& text) {
  if (file.empty()) return {};
  std::ifstream stream(file);
  std::stringstream all;
  all << stream.rdbuf();
  if (!stream) return {kFailed, file + ": " + std::strerror(errno), {}};
  text = all.str();
  return {};
}

}  // namespace

struct Rpc::Channel {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
};

Rpc::Rpc(Endpoint endpoint, std::chrono::milliseconds timeout)
    : endpoint_(std::move(endpoint)), timeout_(timeout) {}

Rpc::~Rpc() = default;

CallResult Rpc::Connect() {
  const std::string& path = endpoint_.socket;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  grpc::ChannelArguments arguments;
  if (path.empty()) {
    grpc::SslCredentialsOptions options;
    for (const auto& [file, text] :
         {std::pair(&endpoint_.ca_file, &options.pem_root_certs),
          std::pair(&endpoint_.key_file, &options.pem_private_key),
          std::pair(&endpoint_.certificate_file, &options.pem_cert_chain)}) {
      if (auto result = ReadFile(*file, *text); !result.ok()) return result;
    }
    credentials = grpc::SslCredentials(options);
    if (!endpoint_.server_name.empty()) {
      arguments.SetSslTargetNameOverride(endpoint_.server_name);
    }
  } else {
    if (path.size() >= sizeof(sockaddr_un::sun_path)) {
      return {kUsage, path + ": a socket path has 1 to 107 bytes", {}};
    }
    const bool gateway = endpoint_.what == "gateway";
    const int error = TryUnixSocket(path);
    if (error == EACCES || error == EPERM) {
      return {kDenied,
              "no right to open " + path + "; run as the user that " +
                  (gateway ? "rocegwd" : "rocegw-controller") + " runs as (often: with sudo)",
              {}};
    }
    if (error != 0) {
      return {kUnavailable,
              "no " + endpoint_.what + " at " + path + " (" + std::strerror(error) + "); is " +
                  (gateway ? "rocegwd running? --socket names another place"
                           : "rocegw-controller running? --controller and --context name another"),
              {}};
    }
    credentials = grpc::InsecureChannelCredentials();
  }
  arguments.SetMaxReceiveMessageSize(kMostBytes);
  // The environment's proxy is meant for downloads, not for the fleet.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, endpoint_.proxy ? 1 : 0);
  channel_ = std::make_unique<Channel>();
  channel_->channel = grpc::CreateCustomChannel(path.empty() ? endpoint_.address : "unix:" + path,
                                                credentials, arguments);
  channel_->stub = std::make_unique<grpc::GenericStub>(channel_->channel);
  return {};
}

CallResult Rpc::Call(const std::string& method, const Message& request, Message& response,
                     std::chrono::milliseconds timeout) {
  if (timeout.count() == 0) timeout = timeout_;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  grpc::CompletionQueue queue;
  const auto call = channel_->stub->PrepareUnaryCall(&context, method, Bytes(request), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, Tag(1));
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  const std::string who = "the " + endpoint_.what + " at " + endpoint_.Text();
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
      status.error_details().empty()) {
    return {kDeadline,
            who + " did not answer within " + std::to_string(timeout.count()) + " ms (--timeout)",
            {}};
  }
  if (!status.ok()) return Refusal(status, who, method);
  if (!Parse(answer, response)) {
    return {kFailed, who + " answered " + method + " with something else", {}};
  }
  return {};
}

CallResult Rpc::Stream(const std::string& method, const Message& request, Message& response,
                       const std::function<bool()>& on_message,
                       const std::function<bool()>& enough) {
  constexpr std::chrono::milliseconds kLookEvery(100);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = channel_->stub->PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  bool ended = false;  // ended by `enough`
  const auto done = [&] {
    while (enough && !ended) {
      const auto until = std::chrono::system_clock::now() + kLookEvery;
      const auto next = queue.AsyncNext(&tag, &ok, until);
      if (next == grpc::CompletionQueue::SHUTDOWN) return false;
      ended = enough();
      if (ended) context.TryCancel();
      if (next == grpc::CompletionQueue::GOT_EVENT) return ok;
    }
    return queue.Next(&tag, &ok) && ok;
  };
  bool garbled = false;
  call->StartCall(Tag(1));
  if (done()) {
    call->WriteLast(Bytes(request), grpc::WriteOptions(), Tag(2));
    if (done()) {
      grpc::ByteBuffer buffer;
      for (call->Read(&buffer, Tag(3)); done(); call->Read(&buffer, Tag(3))) {
        garbled = !Parse(buffer, response);
        if (garbled || !on_message()) {
          context.TryCancel();
          break;
        }
      }
    }
  }
  grpc::Status status;
  call->Finish(&status, Tag(4));
  queue.Next(&tag, &ok);
  queue.Shutdown();
  const std::string who = "the " + endpoint_.what + " at " + endpoint_.Text();
  if (garbled) return {kFailed, who + " answered " + method + " with something else", {}};
  if (status.ok() || status.error_code() == grpc::StatusCode::CANCELLED) return {};
  return Refusal(status, who, method);
}

}  // namespace rocegw::cli
