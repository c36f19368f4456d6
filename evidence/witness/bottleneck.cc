// Clients behind a bottleneck, in ns-3: the network of scenarios/nb-iot.toml with ns-3's UDP, IPv4, devices and queues.
//
// All clients are sockets of one node, which stands for their site. Each asks one server for the next response when the last has
// come. Prints one line of JSON: the flow completion time of each client in seconds, -1 for one that gave up, and counts.

#include "coap.h"

#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <iostream>
#include <map>
#include <memory>

using namespace ns3;

namespace {

/// CoAP's port.
constexpr uint16_t kPort = 5683;
/// Bytes of the response's payload, and the path of the request: six bytes of option.
constexpr std::size_t kPayloadBytes = 60;
const std::string kUriPath = "hello";

/// A channel on which every device has its own delay, drawn anew for each packet. Packets may overtake each other.
class PathChannel : public SimpleChannel {
public:
    void SetDelay(Ptr<NetDevice> sender, Ptr<RandomVariableStream> seconds) { m_delays[sender] = seconds; }

    void Send(Ptr<Packet> packet, uint16_t protocol, Mac48Address to, Mac48Address from,
              Ptr<SimpleNetDevice> sender) override {
        const Time delay = Seconds(m_delays.at(sender)->GetValue());
        for (std::size_t i = 0; i < GetNDevices(); i++) {
            auto other = DynamicCast<SimpleNetDevice>(GetDevice(i));
            if (other != sender) {
                Simulator::ScheduleWithContext(other->GetNode()->GetId(), delay, &SimpleNetDevice::Receive, other,
                                               packet->Copy(), protocol, to, from);
            }
        }
    }

private:
    std::map<Ptr<NetDevice>, Ptr<RandomVariableStream>> m_delays;
};

Ptr<RandomVariableStream> Constant(double seconds) {
    return CreateObjectWithAttributes<ConstantRandomVariable>("Constant", DoubleValue(seconds));
}

Ptr<RandomVariableStream> Uniform(double least, double most) {
    return CreateObjectWithAttributes<UniformRandomVariable>("Min", DoubleValue(least), "Max", DoubleValue(most));
}

/// Adds a device with an address to a node. It has a drop-tail queue of bytes, which the packet being sent has left. A rate of 0 is
/// unlimited.
Ptr<SimpleNetDevice> AddDevice(Ptr<Node> node, Ptr<PathChannel> channel, const std::string& rate, const std::string& queue,
                               Ptr<RandomVariableStream> delay, const char* address) {
    auto device = CreateObject<SimpleNetDevice>();
    device->SetAttribute("PointToPointMode", BooleanValue(true));
    device->SetAttribute("DataRate", DataRateValue(DataRate(rate)));
    device->SetQueue(CreateObjectWithAttributes<DropTailQueue<Packet>>("MaxSize", QueueSizeValue(QueueSize(queue))));
    device->SetAddress(Mac48Address::Allocate());
    device->SetChannel(channel);
    channel->SetDelay(device, delay);
    node->AddDevice(device);
    // No queueing discipline: the helper that assigns addresses would install one.
    auto ipv4 = node->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(address), Ipv4Mask("/24")));
    ipv4->SetUp(interface);
    return device;
}

void AddDefaultRoute(Ptr<Node> node, const char* gateway) {
    Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(Ipv4Address(gateway), 1);
}

std::vector<uint8_t> BytesOf(Ptr<Packet> packet) {
    std::vector<uint8_t> bytes(packet->GetSize());
    packet->CopyData(bytes.data(), bytes.size());
    return bytes;
}

Ptr<Packet> PacketOf(const std::vector<uint8_t>& bytes) {
    return Create<Packet>(bytes.data(), bytes.size());
}

/// A client: a socket and its exchanges.
class Client {
public:
    Client(Ptr<Node> node, Ipv4Address server, const witness::Parameters& parameters, uint32_t exchanges)
        : m_exchanges(
              parameters, [this](uint16_t messageId) { Send(messageId); }, [this](bool answered) { Over(answered); }),
          m_left(exchanges) {
        m_socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
        m_socket->Bind();
        m_socket->Connect(InetSocketAddress(server, kPort));
        m_socket->SetRecvCallback(MakeCallback(&Client::Receive, this));
        Simulator::ScheduleNow(&Client::Begin, this);
    }

    double FlowCompletionTime() const { return m_done; }
    uint64_t Retransmissions() const { return m_exchanges.Retransmissions(); }

private:
    void Begin() { m_exchanges.Begin(++m_messageId); }

    void Send(uint16_t messageId) { m_socket->Send(PacketOf(witness::Message(0, 1, messageId, kUriPath, 0))); }

    void Receive(Ptr<Socket> socket) {
        while (auto packet = socket->Recv()) {
            m_exchanges.Answered(witness::MessageId(BytesOf(packet)));
        }
    }

    void Over(bool answered) {
        m_left = answered ? m_left - 1 : 0;
        if (m_left > 0) {
            Begin();
        } else if (answered) {
            m_done = Simulator::Now().GetSeconds();
        }
    }

    witness::Exchanges m_exchanges;
    uint32_t m_left;
    uint16_t m_messageId = 0;
    Ptr<Socket> m_socket;
    double m_done = -1;
};

/// Answers every copy of a request that arrives.
void Serve(Ptr<Socket> socket) {
    Address from;
    while (auto packet = socket->RecvFrom(from)) {
        const uint16_t messageId = witness::MessageId(BytesOf(packet));
        socket->SendTo(PacketOf(witness::Message(2, 69, messageId, "", kPayloadBytes)), 0, from);
    }
}

} // namespace

int main(int argc, char* argv[]) {
    uint32_t clients = 10;
    uint32_t exchanges = 50;
    uint32_t run = 1;
    std::string buffer = "1410000B";
    std::string pcap;
    witness::Parameters parameters;
    CommandLine cmd(__FILE__);
    cmd.AddValue("clients", "clients at the site", clients);
    cmd.AddValue("exchanges", "exchanges of a client", exchanges);
    cmd.AddValue("buffer", "bytes that may wait at each end of the bottleneck, such as 2500B", buffer);
    cmd.AddValue("maxRetransmit", "MAX_RETRANSMIT", parameters.maxRetransmit);
    cmd.AddValue("run", "the number of the run, which its random numbers depend on", run);
    cmd.AddValue("pcap", "beginning of the names of captures, one for each interface", pcap);
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(run);

    auto site = CreateObject<Node>();
    auto router = CreateObject<Node>();
    auto server = CreateObject<Node>();
    InternetStackHelper internet;
    for (const auto& node : {site, router, server}) {
        internet.Install(node);
    }
    auto radio = CreateObject<PathChannel>();
    auto backhaul = CreateObject<PathChannel>();
    auto up = AddDevice(site, radio, "60kb/s", buffer, Constant(0.2), "10.0.1.1");
    auto down = AddDevice(router, radio, "30kb/s", buffer, Constant(0.4), "10.0.1.2");
    AddDevice(router, backhaul, "0b/s", "1000000p", Uniform(0.01, 0.02), "10.0.2.1");
    AddDevice(server, backhaul, "0b/s", "1000000p", Uniform(0.01, 0.02), "10.0.2.2");
    AddDefaultRoute(site, "10.0.1.2");
    AddDefaultRoute(server, "10.0.2.1");
    if (!pcap.empty()) {
        internet.EnablePcapIpv4(pcap, NodeContainer(site));
    }

    auto socket = Socket::CreateSocket(server, UdpSocketFactory::GetTypeId());
    socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    socket->SetRecvCallback(MakeCallback(&Serve));
    std::vector<std::unique_ptr<Client>> all;
    for (uint32_t i = 0; i < clients; i++) {
        all.push_back(std::make_unique<Client>(site, Ipv4Address("10.0.2.2"), parameters, exchanges));
    }
    Simulator::Run();

    uint64_t retransmissions = 0;
    std::cout.precision(9);
    std::cout << "{\"fct_s\":[";
    for (const auto& client : all) {
        std::cout << (client == all.front() ? "" : ",") << client->FlowCompletionTime();
        retransmissions += client->Retransmissions();
    }
    std::cout << "],\"retransmissions\":" << retransmissions
              << ",\"drops\":" << up->GetQueue()->GetTotalDroppedPackets() + down->GetQueue()->GetTotalDroppedPackets() << "}\n";
    Simulator::Destroy();
}
