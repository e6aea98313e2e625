// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/connectivity_test.h"

#include <mutex>
#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/api/questions/probe_pair.h"

namespace rocegw::api {
namespace {

using admin::v1::TestConnectivityRequest;
using admin::v1::TestConnectivityResponse;

constexpr char kDefaultPool[] = "tenants/default/pools/default";

class TestReactor final : public grpc::ServerUnaryReactor,
                          public std::enable_shared_from_this<TestReactor> {
 public:
  TestReactor(QuestionRouter& router, ConnectivityTests& tests, TestConnectivityRequest request,
              TestConnectivityResponse& response, QuestionRouter::Clock::time_point deadline)
      : router_(router),
        tests_(tests),
        request_(std::move(request)),
        response_(response),
        deadline_(deadline) {}

  // Keeps the object until gRPC is done with it.
  void Live() { self_ = shared_from_this(); }
  void Start() {
    const auto pair = ProbePair::Start(
        router_, request_, deadline_,
        [self = shared_from_this()](const auto& result) { self->End(grpc::Status::OK, &result); });
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      pair_ = pair;
      over = over_;
    }
    // The caller was faster.
    if (over) pair->Cancel();
  }
  // `result`: nullptr without one.
  void End(const grpc::Status& status, const TestConnectivityResponse* result = nullptr) {
    std::shared_ptr<ProbePair> pair;
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(over_, true)) return;
      if (result != nullptr) response_ = *result;
      pair = std::move(pair_);
    }
    if (pair != nullptr) pair->Cancel();
    Finish(status);
  }

  // Called when the caller has cancelled.
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    tests_.End();
    self_.reset();
  }

 private:
  QuestionRouter& router_;
  ConnectivityTests& tests_;
  const TestConnectivityRequest request_;
  TestConnectivityResponse& response_;
  const QuestionRouter::Clock::time_point deadline_;
  std::mutex mutex_;
  std::shared_ptr<ProbePair> pair_;
  bool over_ = false;
  std::shared_ptr<TestReactor> self_;  // held until gRPC is done
};

}  // namespace

bool ConnectivityTests::Begin() {
  if (under_way_.fetch_add(1) < kMost) return true;
  --under_way_;
  return false;
}

grpc::ServerUnaryReactor* NewConnectivityTest(const grpc::CallbackServerContext& context,
                                              const GatewayQuestions& questions,
                                              ConnectivityTests& tests, const Admitted& caller,
                                              const TestConnectivityRequest& request,
                                              TestConnectivityResponse& response) {
  TestConnectivityRequest asked = request;
  if (asked.pool().empty()) asked.set_pool(kDefaultPool);
  const auto reactor = std::make_shared<TestReactor>(questions.router, tests, std::move(asked),
                                                     response, context.deadline());
  reactor->Live();
  store::Transaction record;
  record.then = {AuditOf(caller, request.from(), request)};
  questions.backend.store.TxnAsync(std::move(record),
                                   [reactor](const StatusOr<store::TransactionResult>& written) {
                                     if (!written.ok())
                                       return reactor->End(ToStatus(FromStore(written.status())));
                                     reactor->Start();
                                   });
  return reactor.get();
}

}  // namespace rocegw::api
