// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/etcd/etcd_store.h"

#include <future>
#include <utility>

#include "controlplane/store/etcd/etcd_call.h"
#include "controlplane/store/etcd/etcd_endpoints.h"
#include "controlplane/store/etcd/etcd_lease.h"
#include "controlplane/store/etcd/etcd_messages.h"
#include "controlplane/store/etcd/etcd_watch.h"
#include "controlplane/store/random_uuid.h"

namespace rocegw::store {
namespace {

class EtcdStore : public Store {
 public:
  EtcdStore(EtcdOptions options, std::unique_ptr<EtcdEndpoints> endpoints)
      : options_(std::move(options)), messages_(options_.root), endpoints_(std::move(endpoints)) {}
  ~EtcdStore() override { calls_.CancelAll(); }

  // Reads the identity, or creates it.
  Status Identify();

  const std::string& uuid() const override { return uuid_; }
  std::string_view backend() const override { return "etcd"; }
  void TxnAsync(Transaction transaction, TxnDone done) override;
  void RangeAsync(RangeRequest request, RangeDone done) override;
  StatusOr<std::unique_ptr<Watch>> NewWatch(KeyRange range, Revision from,
                                            std::function<void()> ready) override;
  Status Compact(Revision revision) override;
  StatusOr<std::unique_ptr<Lease>> NewLease(std::chrono::seconds time_to_live,
                                            std::function<void()> lost) override;

 private:
  using TxnCall = EtcdCall<etcdserverpb::TxnRequest, etcdserverpb::TxnResponse>;
  using RangeCall = EtcdCall<etcdserverpb::RangeRequest, etcdserverpb::RangeResponse>;
  using CompactCall = EtcdCall<etcdserverpb::CompactionRequest, etcdserverpb::CompactionResponse>;
  using GrantCall = EtcdCall<etcdserverpb::LeaseGrantRequest, etcdserverpb::LeaseGrantResponse>;

  void StartTxn(etcdserverpb::TxnRequest request, bool repeatable, TxnCall::Done done) {
    TxnCall::Start(
        calls_, *endpoints_, options_, repeatable, std::move(request),
        [](EtcdEndpoints::Member& member, grpc::ClientContext* context,
           const etcdserverpb::TxnRequest* txn, etcdserverpb::TxnResponse* response,
           std::function<void(grpc::Status)> ended) {
          member.kv->async()->Txn(context, txn, response, std::move(ended));
        },
        std::move(done));
  }

  const EtcdOptions options_;
  const EtcdMessages messages_;
  const std::unique_ptr<EtcdEndpoints> endpoints_;
  EtcdCalls calls_;
  std::string uuid_;
};

Status EtcdStore::Identify() {
  const std::string mine = RandomUuid();
  etcdserverpb::TxnRequest request;
  auto& absent = *request.add_compare();
  absent.set_key(messages_.uuid_key());
  absent.set_target(etcdserverpb::Compare::CREATE);
  absent.set_create_revision(0);
  auto& put = *request.add_success()->mutable_request_put();
  put.set_key(messages_.uuid_key());
  put.set_value(mine);
  request.add_failure()->mutable_request_range()->set_key(messages_.uuid_key());

  auto answer = std::make_shared<std::promise<Status>>();
  auto future = answer->get_future();
  // Repeatable: a second execution finds what the first one created.
  StartTxn(std::move(request), true, [&](const grpc::Status& status, auto& response) {
    if (status.ok() && response.succeeded()) {
      uuid_ = mine;
    } else if (status.ok()) {
      uuid_ = response.responses(0).response_range().kvs(0).value();
    }
    answer->set_value(FromGrpc(status, false));
  });
  return future.get();
}

void EtcdStore::TxnAsync(Transaction transaction, TxnDone done) {
  if (Status status = transaction.Validate(); !status.ok()) return done(std::move(status));
  StartTxn(messages_.From(transaction), false,
           [this, done = std::move(done)](const grpc::Status& status, auto& response) {
             if (!status.ok()) return done(FromGrpc(status, true));
             done(messages_.To(response));
           });
}

void EtcdStore::RangeAsync(RangeRequest request, RangeDone done) {
  const Revision at = request.revision;
  // etcd takes a negative revision for the newest.
  if (at < 0) return done(Status(kFutureRevision, "there is no revision below 0"));
  RangeCall::Start(
      calls_, *endpoints_, options_, true, messages_.From(request),
      [](EtcdEndpoints::Member& member, grpc::ClientContext* context,
         const etcdserverpb::RangeRequest* range, etcdserverpb::RangeResponse* response,
         std::function<void(grpc::Status)> ended) {
        member.kv->async()->Range(context, range, response, std::move(ended));
      },
      [this, at, done = std::move(done)](const grpc::Status& status, auto& response) {
        if (!status.ok()) return done(FromGrpc(status, false));
        RangeResult result;
        result.revision = at == 0 ? response.header().revision() : at;
        result.more = response.more();
        result.entries.reserve(static_cast<size_t>(response.kvs_size()));
        for (const auto& kv : response.kvs()) result.entries.push_back(messages_.To(kv));
        done(std::move(result));
      });
}

StatusOr<std::unique_ptr<Watch>> EtcdStore::NewWatch(KeyRange range, Revision from,
                                                     std::function<void()> ready) {
  if (from < 1) return Status(kInvalid, "a watch begins at revision 1 or later");
  return NewEtcdWatch(*endpoints_, messages_, std::move(range), from, std::move(ready));
}

Status EtcdStore::Compact(Revision revision) {
  etcdserverpb::CompactionRequest request;
  request.set_revision(revision);
  auto answer = std::make_shared<std::promise<Status>>();
  auto future = answer->get_future();
  CompactCall::Start(
      calls_, *endpoints_, options_, true, std::move(request),
      [](EtcdEndpoints::Member& member, grpc::ClientContext* context,
         const etcdserverpb::CompactionRequest* compact, etcdserverpb::CompactionResponse* response,
         std::function<void(grpc::Status)> ended) {
        member.kv->async()->Compact(context, compact, response, std::move(ended));
      },
      [answer](const grpc::Status& status, auto&) {
        Status result = FromGrpc(status, false);
        // Compacted already, by this or another process.
        if (result.error() == kCompacted) result = OkStatus();
        answer->set_value(std::move(result));
      });
  return future.get();
}

StatusOr<std::unique_ptr<Lease>> EtcdStore::NewLease(std::chrono::seconds time_to_live,
                                                     std::function<void()> lost) {
  const auto asked = EtcdLease::Clock::now();
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(time_to_live.count());
  auto answer = std::make_shared<std::promise<StatusOr<LeaseId>>>();
  auto future = answer->get_future();
  GrantCall::Start(
      calls_, *endpoints_, options_, true, std::move(request),
      [](EtcdEndpoints::Member& member, grpc::ClientContext* context,
         const etcdserverpb::LeaseGrantRequest* grant, etcdserverpb::LeaseGrantResponse* response,
         std::function<void(grpc::Status)> ended) {
        member.lease->async()->LeaseGrant(context, grant, response, std::move(ended));
      },
      [answer](const grpc::Status& status, auto& response) {
        if (status.ok()) {
          answer->set_value(response.id());
        } else {
          answer->set_value(FromGrpc(status, false));
        }
      });
  auto id = future.get();
  if (!id.ok()) return id.status();
  return std::unique_ptr<Lease>(
      std::make_unique<EtcdLease>(*endpoints_, id.value(), time_to_live, asked, std::move(lost)));
}

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenEtcdStore(const EtcdOptions& options) {
  auto endpoints = EtcdEndpoints::Make(options);
  if (!endpoints.ok()) return endpoints.status();
  auto store = std::make_unique<EtcdStore>(options, std::move(*endpoints));
  if (Status status = store->Identify(); !status.ok()) return status;
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace rocegw::store
