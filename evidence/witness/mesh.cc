// Nodes that tell a sink, in ns-3: its lr-wpan (IEEE 802.15.4, unslotted CSMA/CA) under datagrams and routes of this file.
//
// A frame has the bytes of 6LoWPAN's compressed headers (RFC 6282) and of CoAP, but only the fields that this program needs are
// written. Routes are shortest paths to the sink, node 0, and back. Prints one line of JSON with counts.

#include "coap.h"

#include "ns3/lr-wpan-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/spectrum-module.h"

#include <fstream>
#include <iostream>
#include <map>
#include <memory>

namespace ns3 {
// Since ns-3.42 the classes of lr-wpan have a namespace of their own.
namespace lrwpan {}
using namespace lrwpan;
} // namespace ns3

using namespace ns3;

namespace {

constexpr uint16_t kPan = 1;
constexpr uint32_t kSink = 0;
constexpr uint8_t kHopLimit = 64;
/// Bytes of a response: the header and a token of four bytes.
constexpr uint32_t kResponseBytes = 8;
/// Bytes of UDP's compressed header: ports of two bytes each, and a checksum.
constexpr uint32_t kUdpBytes = 7;

/// A datagram. The first byte of a frame is 0, which says that it is not one of 6LoWPAN (RFC 4944 §5.1).
struct Datagram {
    uint32_t source = 0;
    uint32_t dest = 0;
    uint16_t messageId = 0;
    uint8_t hopLimit = kHopLimit;

    bool IsRequest() const { return dest == kSink; }

    /// Returns the bytes of a frame's payload on the hop between two nodes: what RFC 6282 leaves of the headers, and CoAP.
    uint32_t Bytes(uint32_t from, uint32_t to, uint32_t messageBytes) const {
        const uint32_t iphc = 2 + (hopLimit == kHopLimit ? 0 : 1) + (source == from ? 0 : 8) + (dest == to ? 0 : 8);
        return iphc + kUdpBytes + (IsRequest() ? messageBytes : kResponseBytes);
    }

    Ptr<Packet> Write(uint32_t bytes) const {
        std::vector<uint8_t> buffer(bytes);
        buffer[1] = static_cast<uint8_t>(source);
        buffer[2] = static_cast<uint8_t>(dest);
        buffer[3] = static_cast<uint8_t>(messageId >> 8);
        buffer[4] = static_cast<uint8_t>(messageId);
        buffer[5] = hopLimit;
        return Create<Packet>(buffer.data(), buffer.size());
    }

    static Datagram Read(Ptr<Packet> packet) {
        uint8_t buffer[6];
        packet->CopyData(buffer, sizeof buffer);
        return {buffer[1], buffer[2], static_cast<uint16_t>(buffer[3] << 8 | buffer[4]), buffer[5]};
    }
};

/// The experiment.
struct Setup {
    std::string positions;
    uint32_t messageBytes = 60;
    double interval = 1;
    double start = 10;
    double end = 310;
    double rangeM = 10.5;
    uint32_t queueFrames = 16;
    witness::Parameters coap;
};

/// Counts of all nodes.
struct Counts {
    uint64_t offered = 0;
    uint64_t busy = 0;
    uint64_t reached = 0;
    uint64_t answered = 0;
    uint64_t givenUp = 0;
    uint64_t frames = 0;
    uint64_t drops = 0;
    /// Those of them with a response. The frame of a request is longer than its message, that of a response is not.
    uint64_t droppedResponses = 0;
    double delayS = 0;
};

/// Routes: every node's parent on a shortest path to the sink, drawn among those equally near.
class Tree {
public:
    Tree(const std::vector<Vector>& places, double rangeM) : m_parents(places.size(), kSink) {
        auto draw = CreateObject<UniformRandomVariable>();
        std::vector<uint32_t> depths(places.size(), UINT32_MAX);
        std::vector<double> best(places.size());
        depths[kSink] = 0;
        std::vector<uint32_t> found = {kSink};
        for (std::size_t i = 0; i < found.size(); i++) {
            const uint32_t above = found[i];
            for (uint32_t node = 0; node < places.size(); node++) {
                if (CalculateDistance(places[above], places[node]) > rangeM) {
                    continue;
                }
                if (depths[node] == UINT32_MAX) {
                    depths[node] = depths[above] + 1;
                    best[node] = -1;
                    found.push_back(node);
                }
                const double ticket = draw->GetValue();
                if (depths[node] == depths[above] + 1 && ticket > best[node]) {
                    best[node] = ticket;
                    m_parents[node] = above;
                }
            }
        }
        NS_ABORT_MSG_IF(found.size() < places.size(), "a node has no path to the sink");
    }

    /// Returns the next hop: up to the sink, or down to the child that has the destination below it.
    uint32_t Next(uint32_t node, uint32_t dest) const {
        if (dest == kSink) {
            return m_parents[node];
        }
        while (m_parents[dest] != node) {
            dest = m_parents[dest];
        }
        return dest;
    }

private:
    std::vector<uint32_t> m_parents;
};

Mac64Address AddressOf(uint32_t node) {
    uint8_t bytes[8] = {2, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(node)};
    Mac64Address address;
    address.CopyFrom(bytes);
    return address;
}

uint32_t NodeOf(Mac64Address address) {
    uint8_t bytes[8];
    address.CopyTo(bytes);
    return bytes[7];
}

/// What all nodes share.
struct Network {
    Setup setup;
    std::unique_ptr<Tree> tree;
    Counts counts;
    /// The moment at which a message was offered, by client and Message ID, until it reaches the sink.
    std::map<std::pair<uint32_t, uint16_t>, Time> offers;
};

/// A node: the layers above its MAC, and its application.
class Mote {
public:
    Mote(Network& network, uint32_t self, Ptr<LrWpanNetDevice> device)
        : m_network(network), m_self(self), m_mac(DynamicCast<LrWpanMac>(device->GetMac())),
          m_exchanges(
              network.setup.coap, [this](uint16_t messageId) { Forward({m_self, kSink, messageId, kHopLimit}); },
              [this](bool answered) { Over(answered); }) {
        m_mac->SetPanId(kPan);
        m_mac->SetExtendedAddress(AddressOf(self));
        m_mac->SetTxQMaxSize(network.setup.queueFrames);
        m_mac->SetMcpsDataIndicationCallback(MakeCallback(&Mote::Receive, this));
        m_mac->TraceConnectWithoutContext("MacTx", MakeCallback(&Mote::Sent, this));
        m_mac->TraceConnectWithoutContext("MacTxDrop", MakeCallback(&Mote::Dropped, this));
        if (self != kSink) {
            m_gaps = CreateObject<ExponentialRandomVariable>();
            m_gaps->SetAttribute("Mean", DoubleValue(network.setup.interval));
            Simulator::Schedule(Seconds(network.setup.start) + Gap(), &Mote::Offer, this);
        }
    }

    uint64_t Retransmissions() const { return m_exchanges.Retransmissions(); }

private:
    /// Offers a message, at exponentially distributed times from each other. It is dropped if the exchange before is open.
    void Offer() {
        m_network.counts.offered++;
        if (m_exchanges.IsOpen()) {
            m_network.counts.busy++;
        } else {
            m_network.offers[{m_self, ++m_messageId}] = Simulator::Now();
            m_exchanges.Begin(m_messageId);
        }
        Simulator::Schedule(Gap(), &Mote::Offer, this);
    }

    Time Gap() { return Seconds(m_gaps->GetValue()); }

    void Over(bool answered) { (answered ? m_network.counts.answered : m_network.counts.givenUp)++; }

    void Forward(const Datagram& datagram) {
        const uint32_t next = m_network.tree->Next(m_self, datagram.dest);
        McpsDataRequestParams request;
        request.m_srcAddrMode = EXT_ADDR;
        request.m_dstAddrMode = EXT_ADDR;
        request.m_dstPanId = kPan;
        request.m_dstExtAddr = AddressOf(next);
        request.m_msduHandle = 0;
        request.m_txOptions = TX_OPTION_ACK;
        m_mac->McpsDataRequest(request, datagram.Write(datagram.Bytes(m_self, next, m_network.setup.messageBytes)));
    }

    void Receive(McpsDataIndicationParams indication, Ptr<Packet> packet) {
        // The MAC of ns-3 does not recognise a frame that was sent again because its acknowledgement was lost.
        const uint32_t from = NodeOf(indication.m_srcExtAddr);
        const auto last = m_last.find(from);
        if (last != m_last.end() && last->second == indication.m_dsn) {
            return;
        }
        m_last[from] = indication.m_dsn;
        Datagram datagram = Datagram::Read(packet);
        if (datagram.dest != m_self) {
            datagram.hopLimit--;
            Forward(datagram);
        } else if (m_self == kSink) {
            Arrived(datagram);
            Forward({kSink, datagram.source, datagram.messageId, kHopLimit});
        } else {
            m_exchanges.Answered(datagram.messageId);
        }
    }

    /// Counts a message that has reached the sink, unless it is a copy.
    void Arrived(const Datagram& datagram) {
        const auto offer = m_network.offers.find({datagram.source, datagram.messageId});
        if (offer != m_network.offers.end()) {
            m_network.counts.reached++;
            m_network.counts.delayS += (Simulator::Now() - offer->second).GetSeconds();
            m_network.offers.erase(offer);
        }
    }

    /// Counts a data frame that is put on the air. The shortest is longer than an acknowledgement.
    void Sent(Ptr<const Packet> frame) { m_network.counts.frames += frame->GetSize() > 5 ? 1 : 0; }

    /// Counts a frame for which there was no room, no clear channel, or no acknowledgement.
    void Dropped(Ptr<const Packet> frame) {
        m_network.counts.drops++;
        m_network.counts.droppedResponses += frame->GetSize() <= m_network.setup.messageBytes ? 1 : 0;
    }

    Network& m_network;
    uint32_t m_self;
    Ptr<LrWpanMac> m_mac;
    witness::Exchanges m_exchanges;
    Ptr<ExponentialRandomVariable> m_gaps;
    uint16_t m_messageId = 0;
    /// The sequence number of the last frame of each neighbour.
    std::map<uint32_t, uint8_t> m_last;
};

/// Reads the places of nodes from lines of `node time x y`.
std::vector<Vector> ReadPositions(const std::string& name) {
    std::ifstream file(name);
    NS_ABORT_MSG_UNLESS(file, "cannot read " << name);
    std::vector<Vector> places;
    uint32_t node;
    double time;
    double x;
    double y;
    while (file >> node >> time >> x >> y) {
        NS_ABORT_MSG_UNLESS(node == places.size() && node < 256, "nodes of " << name << " are not numbered from 0 to 255");
        places.emplace_back(x, y, 0);
    }
    return places;
}

} // namespace

int main(int argc, char* argv[]) {
    Network network;
    Setup& setup = network.setup;
    setup.coap.maxRetransmit = 4;
    uint32_t run = 1;
    std::string pcap;
    CommandLine cmd(__FILE__);
    cmd.AddValue("positions", "file with lines of `node time x y`", setup.positions);
    cmd.AddValue("messageBytes", "bytes of a CoAP message", setup.messageBytes);
    cmd.AddValue("interval", "seconds from a client's message to its next, on average", setup.interval);
    cmd.AddValue("start", "the second at which the first messages are offered, and counts begin", setup.start);
    cmd.AddValue("end", "the second at which the run ends", setup.end);
    cmd.AddValue("range", "metres within which nodes hear each other", setup.rangeM);
    cmd.AddValue("queueFrames", "frames that a node has room for", setup.queueFrames);
    cmd.AddValue("maxRetransmit", "MAX_RETRANSMIT", setup.coap.maxRetransmit);
    cmd.AddValue("run", "the number of the run, which its random numbers depend on", run);
    cmd.AddValue("pcap", "beginning of the names of captures, one for each node", pcap);
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(run);
    if (!pcap.empty()) {
        GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
    }

    const auto places = ReadPositions(setup.positions);
    network.tree = std::make_unique<Tree>(places, setup.rangeM);

    // Within the range every signal is received with the power at which it was sent, beyond it with none.
    auto channel = CreateObject<SingleModelSpectrumChannel>();
    channel->AddPropagationLossModel(
        CreateObjectWithAttributes<RangePropagationLossModel>("MaxRange", DoubleValue(setup.rangeM)));
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    NodeContainer nodes(places.size());
    for (uint32_t i = 0; i < places.size(); i++) {
        auto mobility = CreateObject<ConstantPositionMobilityModel>();
        mobility->SetPosition(places[i]);
        nodes.Get(i)->AggregateObject(mobility);
    }
    LrWpanHelper helper;
    helper.SetChannel(channel);
    auto devices = helper.Install(nodes);
    std::vector<std::unique_ptr<Mote>> motes;
    for (uint32_t i = 0; i < places.size(); i++) {
        motes.push_back(std::make_unique<Mote>(network, i, DynamicCast<LrWpanNetDevice>(devices.Get(i))));
    }
    if (!pcap.empty()) {
        // The sink's capture has every frame that it hears.
        helper.EnablePcap(pcap, devices, true);
    }
    Simulator::Stop(Seconds(setup.end));
    Simulator::Run();

    const Counts& counts = network.counts;
    uint64_t retransmissions = 0;
    for (const auto& mote : motes) {
        retransmissions += mote->Retransmissions();
    }
    std::cout.precision(9);
    std::cout << "{\"duration_s\":" << setup.end - setup.start << ",\"offered\":" << counts.offered
              << ",\"busy\":" << counts.busy << ",\"reached\":" << counts.reached << ",\"delay_s\":" << counts.delayS
              << ",\"answered\":" << counts.answered << ",\"given_up\":" << counts.givenUp
              << ",\"retransmissions\":" << retransmissions << ",\"frames\":" << counts.frames
              << ",\"drops\":" << counts.drops << ",\"dropped_responses\":" << counts.droppedResponses << "}\n";
    Simulator::Destroy();
}
