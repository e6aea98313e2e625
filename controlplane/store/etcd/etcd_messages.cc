// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/etcd/etcd_messages.h"

namespace rocegw::store {
namespace {

etcdserverpb::Compare::CompareResult RelationOf(Compare::Relation relation) {
  switch (relation) {
    case Compare::Relation::kEqual:
      return etcdserverpb::Compare::EQUAL;
    case Compare::Relation::kNotEqual:
      return etcdserverpb::Compare::NOT_EQUAL;
    case Compare::Relation::kLess:
      return etcdserverpb::Compare::LESS;
    case Compare::Relation::kGreater:
      return etcdserverpb::Compare::GREATER;
  }
  return etcdserverpb::Compare::EQUAL;
}

}  // namespace

void EtcdMessages::Branch(const std::vector<Operation>& operations,
                          google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>* out) const {
  for (const Operation& operation : operations) {
    etcdserverpb::RequestOp& op = *out->Add();
    const std::string key = prefix_ + operation.key;
    switch (operation.kind) {
      case Operation::Kind::kGet:
        op.mutable_request_range()->set_key(key);
        break;
      case Operation::Kind::kDelete:
        op.mutable_request_delete_range()->set_key(key);
        break;
      case Operation::Kind::kPut:
        op.mutable_request_put()->set_key(key);
        op.mutable_request_put()->set_value(operation.value);
        op.mutable_request_put()->set_lease(operation.lease);
        break;
    }
  }
}

etcdserverpb::TxnRequest EtcdMessages::From(const Transaction& transaction) const {
  etcdserverpb::TxnRequest request;
  for (const Compare& compare : transaction.compares) {
    etcdserverpb::Compare& out = *request.add_compare();
    out.set_key(prefix_ + compare.key);
    out.set_result(RelationOf(compare.relation));
    switch (compare.field) {
      case Compare::Field::kCreateRevision:
        out.set_target(etcdserverpb::Compare::CREATE);
        out.set_create_revision(compare.revision);
        break;
      case Compare::Field::kModRevision:
        out.set_target(etcdserverpb::Compare::MOD);
        out.set_mod_revision(compare.revision);
        break;
      case Compare::Field::kValue:
        out.set_target(etcdserverpb::Compare::VALUE);
        out.set_value(compare.value);
        break;
    }
  }
  Branch(transaction.then, request.mutable_success());
  Branch(transaction.otherwise, request.mutable_failure());
  return request;
}

etcdserverpb::RangeRequest EtcdMessages::From(const RangeRequest& request) const {
  etcdserverpb::RangeRequest out;
  SetRange(request.range, &out);
  out.set_revision(request.revision);
  out.set_limit(static_cast<int64_t>(request.limit));
  out.set_keys_only(request.keys_only);
  return out;
}

Entry EtcdMessages::To(const etcdserverpb::KeyValue& kv) const {
  return {kv.key().substr(prefix_.size()), kv.value(), kv.create_revision(), kv.mod_revision(),
          kv.lease()};
}

Change EtcdMessages::To(const etcdserverpb::Event& event) const {
  if (event.type() == etcdserverpb::Event::PUT) return {false, To(event.kv())};
  return {true, {event.kv().key().substr(prefix_.size()), "", 0, event.kv().mod_revision(), 0}};
}

TransactionResult EtcdMessages::To(const etcdserverpb::TxnResponse& response) const {
  TransactionResult result;
  result.succeeded = response.succeeded();
  result.revision = response.header().revision();
  for (const auto& op : response.responses()) {
    OperationResult& done = result.results.emplace_back();
    if (op.has_response_delete_range()) {
      done.deleted = op.response_delete_range().deleted() > 0;
    } else if (op.has_response_range() && op.response_range().kvs_size() > 0) {
      done.entry = To(op.response_range().kvs(0));
    }
  }
  return result;
}

}  // namespace rocegw::store
