// The people, clubs, texts and drawings of the demo community. All of them are invented. A person is called by the name
// before the @ of their email address; clubs, mentors and events are called by their names.

const NETWORK = 'https://network.example.org/in'

export const CLUBS = [
  {
    name: 'Robotics Workshop',
    head: 'head',
    description: 'We build things that move, mostly on purpose. Soldering irons, two 3D printers and plenty of ' +
      'patience are in room B12, open to beginners every Tuesday and Thursday evening.',
  },
  {
    name: 'Film Society',
    joining: 'open',
    head: 'mateo',
    description: 'One film a week on the big screen in the old lecture hall, from silent classics to last year’s ' +
      'debuts, and a conversation afterwards that tends to outlast the film.',
  },
  {
    name: 'Hill Walkers',
    joining: 'open',
    head: 'sigrid',
    description: 'Day trips by train, a long weekend in the mountains each term, and boots to borrow if you have ' +
      'none. We walk at the pace of the slowest, and the slowest chooses where to have lunch.',
  },
  {
    name: 'Language Café',
    joining: 'open',
    head: 'linh',
    description: 'Swap an hour of your language for an hour of somebody else’s. Eleven languages at the last ' +
      'count, tea from at least as many places, and no grammar before the second cup.',
  },
  {
    name: 'Kitchen Garden',
    head: 'tomasz',
    description: 'A quarter of an acre behind the sports hall, forty vegetable beds and one stubborn compost ' +
      'heap. Whatever we harvest on Friday is cooked and eaten on Friday.',
  },
]

export const PEOPLE = [
  { name: 'admin', firstName: 'Ingrid', lastName: 'Solheim', role: 'ADMIN' },

  { name: 'head', firstName: 'Nkechi', lastName: 'Obi', role: 'CLUB_HEAD', club: 'Robotics Workshop' },
  { name: 'mateo', firstName: 'Mateo', lastName: 'Quispe', role: 'CLUB_HEAD', club: 'Film Society' },
  { name: 'sigrid', firstName: 'Sigríður', lastName: 'Jónsdóttir', role: 'CLUB_HEAD', club: 'Hill Walkers' },
  { name: 'linh', firstName: 'Linh', lastName: 'Trần', role: 'CLUB_HEAD', club: 'Language Café' },
  { name: 'tomasz', firstName: 'Tomasz', lastName: 'Wiśniewski', role: 'CLUB_HEAD', club: 'Kitchen Garden' },

  { name: 'student', firstName: 'Yuki', lastName: 'Tanaka', role: 'STUDENT', club: 'Robotics Workshop' },
  { name: 'amara', firstName: 'Amara', lastName: 'Diallo', role: 'STUDENT', club: 'Robotics Workshop' },
  { name: 'bilal', firstName: 'Bilal', lastName: 'Hussain', role: 'STUDENT', club: 'Robotics Workshop' },
  { name: 'chiara', firstName: 'Chiara', lastName: 'Lombardi', role: 'STUDENT', club: 'Film Society' },
  { name: 'dmytro', firstName: 'Dmytro', lastName: 'Kovalenko', role: 'STUDENT', club: 'Film Society' },
  { name: 'elif', firstName: 'Elif', lastName: 'Yıldız', role: 'STUDENT', club: 'Film Society' },
  { name: 'farah', firstName: 'Farah', lastName: 'Haddad', role: 'STUDENT', club: 'Hill Walkers' },
  { name: 'gustavo', firstName: 'Gustavo', lastName: 'Nascimento', role: 'STUDENT', club: 'Hill Walkers' },
  { name: 'hana', firstName: 'Hana', lastName: 'Nováková', role: 'STUDENT', club: 'Hill Walkers' },
  { name: 'isaac', firstName: 'Isaac', lastName: 'Mensah', role: 'STUDENT', club: 'Hill Walkers' },
  { name: 'jiwoo', firstName: 'Ji-woo', lastName: 'Park', role: 'STUDENT', club: 'Language Café' },
  { name: 'kavya', firstName: 'Kavya', lastName: 'Ramaswamy', role: 'STUDENT', club: 'Language Café' },
  { name: 'leilani', firstName: 'Leilani', lastName: 'Kahale', role: 'STUDENT', club: 'Language Café' },
  { name: 'miriam', firstName: 'Miriam', lastName: 'Goldberg', role: 'STUDENT', club: 'Language Café' },
  { name: 'noor', firstName: 'Noor', lastName: 'Rahimi', role: 'STUDENT', club: 'Kitchen Garden' },
  { name: 'oisin', firstName: 'Oisín', lastName: 'Byrne', role: 'STUDENT', club: 'Kitchen Garden' },
  { name: 'paula', firstName: 'Paula', lastName: 'Iglesias', role: 'STUDENT', club: 'Kitchen Garden' },
  { name: 'wei', firstName: 'Wei', lastName: 'Zhang', role: 'STUDENT', club: 'Kitchen Garden' },
  { name: 'sven', firstName: 'Sven', lastName: 'Lindqvist', role: 'STUDENT' },
  { name: 'thandiwe', firstName: 'Thandiwe', lastName: 'Nkosi', role: 'STUDENT' },
]

// Next to the one club of each person: more members, requests to join, and offered offices.
export const MEMBERSHIPS = [
  { name: 'student', club: 'Hill Walkers', state: 'member' },
  { name: 'student', club: 'Kitchen Garden', state: 'requested', message: 'Do you have room for one more bed?' },
  { name: 'sven', club: 'Hill Walkers', state: 'member' },
  { name: 'thandiwe', club: 'Language Café', state: 'member' },
  { name: 'wei', club: 'Film Society', state: 'member' },
  { name: 'sven', club: 'Robotics Workshop', state: 'requested', message: 'I can solder, and I ride at night.' },
  { name: 'thandiwe', club: 'Robotics Workshop', state: 'requested', message: 'I have never held a screwdriver.' },
  { name: 'student', club: 'Robotics Workshop', state: 'member', offered: 'deputy', by: 'head' },
]

export const BLOGS = [
  {
    title: 'The robot that was afraid of the door',
    author: 'student',
    status: 'PUBLISHED',
    daysAgo: 4,
    content: 'Our line follower drove three perfect laps in the workshop and then refused to leave it. We ' +
      'changed the motors, the battery and, at midnight, the program. In the end Amara put a hand over the ' +
      'sensor: the light in the corridor is twice as bright, and what looked like fear was a threshold that ' +
      'somebody had written down as a number. Measure first, then solder.',
  },
  {
    title: 'Eleven people, four stoves, one pumpkin',
    author: 'noor',
    status: 'PUBLISHED',
    daysAgo: 11,
    content: 'It weighed nineteen kilos and nobody had planted it. Tomasz thinks it grew out of last year’s ' +
      'compost, which would make it the most successful thing that the heap has ever done. We made soup, a ' +
      'curry, two cakes and something that Oisín calls chutney. Seeds are in the tin beside the door, so take ' +
      'some home.',
  },
  {
    title: 'What I learned from subtitling a film in a weekend',
    author: 'chiara',
    status: 'PUBLISHED',
    daysAgo: 19,
    content: 'A line may stay for two seconds and hold forty characters, and a joke needs both. I had the ' +
      'dialogue translated by Saturday noon and spent the rest of the weekend making it shorter. The Language ' +
      'Café watched the first version and laughed in all the wrong places; the second one is what you will see ' +
      'on screen this month.',
  },
  {
    title: 'How to talk to a stranger for an hour',
    author: 'kavya',
    status: 'PUBLISHED',
    daysAgo: 33,
    content: 'Bring an object, not a topic. Last week somebody put a bus ticket from Lima on the table and we ' +
      'were still talking about it when the room had to be closed. Ask what a word smells like. Let silence be: ' +
      'the other person is looking for a verb.',
  },
  {
    title: 'Packing list for people who hate packing lists',
    author: 'sigrid',
    status: 'PUBLISHED',
    daysAgo: 52,
    content: 'Something dry, something warm, something to eat that you would also eat at home. Everything else ' +
      'is in the hut or in somebody else’s rucksack. If you are not sure whether your shoes will do, they will ' +
      'do as far as the first stream, and that is where we have lunch.',
  },
  {
    title: 'Why our open day needs fewer posters',
    author: 'head',
    status: 'PUBLISHED',
    daysAgo: 75,
    content: 'We asked forty first-year students how they had heard of us. Two said posters; thirty-one said ' +
      'that a friend had taken them along. So this term we print nothing, and everybody who comes to the ' +
      'workshop brings somebody who has never held a screwdriver.',
  },
  {
    title: 'Notes for a cheaper motor controller',
    author: 'student',
    status: 'DRAFT',
    daysAgo: 1,
    content: 'The board that we buy costs more than the motors that it drives. Here is a first sketch with parts ' +
      'from the drawer; the current limit still needs measuring, so please do not build it yet.',
  },
  {
    title: 'Six films that end at a railway station',
    author: 'dmytro',
    status: 'DRAFT',
    daysAgo: 2,
    content: 'I wanted ten and found six, because in the others the train leaves a minute too early. Two of them ' +
      'are in the society’s own collection. Suggestions are welcome before I send this in.',
  },
  {
    title: 'Sowing calendar for the spring that was too wet',
    author: 'tomasz',
    status: 'ARCHIVED',
    daysAgo: 140,
    content: 'Beans two weeks late, peas on the first dry Saturday, and nothing at all in the beds by the wall ' +
      'before the drain is mended. It is mended now, so use the new calendar on the shed door instead.',
  },
  {
    title: 'Room change for the autumn conversation tables',
    author: 'linh',
    status: 'ARCHIVED',
    daysAgo: 160,
    content: 'Until the heating in the library works again we meet in the canteen, at the three tables by the ' +
      'window. Spanish moves to Wednesday, everything else stays where it was.',
  },
]

export const MENTORS = [
  {
    name: 'Adaeze Nwosu',
    expertise: 'Embedded systems, and how to read a data sheet',
    club: 'Robotics Workshop',
    networkUrl: `${NETWORK}/adaeze-nwosu`,
    likedBy: ['student', 'amara', 'bilal', 'head', 'sven', 'wei', 'hana', 'jiwoo', 'thandiwe'],
  },
  {
    name: 'Rafael Ortega',
    expertise: 'Mechanical design and 3D printing',
    club: 'Robotics Workshop',
    networkUrl: `${NETWORK}/rafael-ortega`,
    likedBy: ['amara', 'bilal', 'oisin'],
  },
  {
    name: 'Marie-Claire Dubois',
    expertise: 'Screenwriting and editing',
    club: 'Film Society',
    networkUrl: `${NETWORK}/mc-dubois`,
    likedBy: ['chiara', 'dmytro', 'elif', 'mateo', 'student', 'miriam'],
  },
  {
    name: 'Arjun Deshpande',
    expertise: 'Sound design',
    club: 'Film Society',
    likedBy: ['elif', 'kavya'],
  },
  {
    name: 'Ewan MacLeod',
    expertise: 'Navigation and mountain first aid',
    club: 'Hill Walkers',
    networkUrl: `${NETWORK}/ewan-macleod`,
    likedBy: ['farah', 'gustavo', 'hana', 'isaac', 'sigrid', 'paula', 'noor'],
  },
  {
    name: 'Keiko Yamamoto',
    expertise: 'Interpreting, and learning a language after twenty',
    club: 'Language Café',
    networkUrl: `${NETWORK}/keiko-yamamoto`,
    likedBy: ['jiwoo', 'leilani', 'miriam', 'linh', 'chiara'],
  },
  {
    name: 'Zanele Khumalo',
    expertise: 'Soil, compost and small farms',
    club: 'Kitchen Garden',
    likedBy: [],
  },
]

// yearsAgo: in which year they left, counted back from this one.
export const TESTIMONIALS = [
  {
    name: 'Olumide Bakare',
    yearsAgo: 2,
    content: 'I came to the workshop to have my bicycle lamp repaired. Four years later I design lamps.',
  },
  {
    name: 'Freya Andersen',
    yearsAgo: 3,
    content: 'Everything I know about running a meeting I learned from choosing a film with thirty people.',
  },
  {
    name: 'Ahmad Karimi',
    yearsAgo: 4,
    content: 'When I arrived I knew nobody and half of the language. The café gave me both within a term.',
  },
  {
    name: 'Beatriz Carvalho',
    yearsAgo: 1,
    content: 'My mentor answered one email in my first year. I have been answering them myself ever since.',
  },
  {
    name: 'Nguyễn Minh Anh',
    yearsAgo: 6,
    content: 'We still walk together every autumn, with children on our backs now and the same terrible map.',
  },
  {
    name: 'Saoirse Kelly',
    yearsAgo: 9,
    content: 'I dug the first bed of the garden. Go and see it: it is the crooked one by the tap.',
  },
]

// inDays: days from today. hour: of the day in UTC. hours: how long it lasts. capacity: the number of seats.
// drawInDays: when the seats are drawn among all who registered; 0 means today.
export const EVENTS = [
  {
    title: 'Build a line follower in one evening',
    description: 'Kits, tools and pizza are there. You need no experience, and you take your robot home.',
    club: 'Robotics Workshop',
    inDays: 6,
    hour: 17,
    hours: 3,
    place: 'Room B12',
    capacity: 8,
    drawInDays: 4,
    registered: ['student', 'amara', 'bilal', 'sven', 'thandiwe', 'kavya', 'wei', 'isaac', 'elif', 'oisin', 'hana'],
  },
  {
    title: 'Robot sumo, the third',
    description: 'Two robots, one ring, three minutes. Bring a robot of at most one kilogram, or come and shout.',
    club: 'Robotics Workshop',
    inDays: 27,
    hour: 15,
    registered: ['head', 'amara', 'student', 'gustavo'],
  },
  {
    title: 'Soldering for the impatient',
    description: 'Two hours, one blinking badge, and how not to burn the table. Eight places at the bench.',
    club: 'Robotics Workshop',
    inDays: -21,
    hour: 16,
    registered: ['student', 'bilal', 'jiwoo', 'farah', 'noor', 'paula', 'dmytro', 'miriam'],
  },
  {
    title: 'A silent film with a live piano',
    description: 'The piano has been tuned and the film has not been shown here for forty years. Doors open early.',
    club: 'Film Society',
    inDays: 3,
    hour: 19,
    hours: 2,
    place: 'The old lecture hall',
    capacity: 60,
    registered: [
      'mateo', 'chiara', 'dmytro', 'elif', 'student', 'linh', 'miriam', 'leilani', 'sigrid', 'paula', 'tomasz', 'jiwoo',
      'thandiwe', 'wei',
    ],
  },
  {
    title: 'Short films by students',
    description: 'Nine films of under nine minutes, all made here this year, and the people who made them.',
    club: 'Film Society',
    inDays: -9,
    hour: 18,
    registered: ['chiara', 'dmytro', 'elif', 'kavya', 'amara', 'oisin', 'student'],
  },
  {
    title: 'Subtitling weekend',
    description: 'Two days, one film, six languages. Together with the Language Café; breakfast is on us.',
    club: 'Film Society',
    inDays: -24,
    hour: 8,
    registered: ['chiara', 'linh', 'kavya', 'miriam', 'leilani'],
  },
  {
    title: 'Sunrise from the ridge',
    description: 'We start in the dark and are back for lectures. Head torch, warm layers, and breakfast in a bag.',
    club: 'Hill Walkers',
    inDays: 10,
    hour: 3,
    registered: ['sigrid', 'farah', 'gustavo', 'hana', 'isaac', 'noor'],
  },
  {
    title: 'Long weekend at the hut',
    description: 'Three days, two passes, one stove. Boots and sleeping bags can be borrowed; sign up by the ' +
      'week before.',
    club: 'Hill Walkers',
    inDays: 41,
    hour: 7,
    hours: 58,
    place: 'The hut below the pass',
    capacity: 12,
    registered: ['hana', 'sigrid', 'sven'],
  },
  {
    title: 'Map and compass for beginners',
    description: 'An afternoon in the park with paper maps. By the end you will have found at least one bench.',
    club: 'Hill Walkers',
    inDays: -47,
    hour: 13,
    registered: ['farah', 'isaac', 'paula', 'thandiwe', 'bilal'],
  },
  {
    title: 'Speed languages',
    description: 'Seven minutes a table, eight tables, eight languages. You will leave with a greeting in each.',
    club: 'Language Café',
    inDays: 13,
    hour: 17,
    hours: 2,
    place: 'The canteen, tables by the window',
    onlineUrl: 'https://meet.example.org/speed-languages',
    capacity: 8,
    drawInDays: 0,
    registered: ['linh', 'jiwoo', 'kavya', 'leilani', 'miriam', 'chiara', 'gustavo', 'farah', 'student'],
  },
  {
    title: 'An evening of untranslatable words',
    description: 'Bring one word of your language that ours lacks, and try to explain it with your hands.',
    club: 'Language Café',
    inDays: -68,
    hour: 18,
    registered: ['jiwoo', 'leilani', 'elif', 'sigrid'],
  },
  {
    title: 'Harvest supper',
    description: 'We pick until six, cook until eight, and eat until it is gone. Bring a plate and a knife.',
    club: 'Kitchen Garden',
    inDays: 1,
    hour: 16,
    registered: ['tomasz', 'noor', 'oisin', 'paula', 'wei', 'amara', 'mateo', 'hana', 'sven', 'dmytro'],
  },
  {
    title: 'Planning the winter beds',
    description: 'What to sow under glass, what to leave to the frost, and who turns the compost until spring.',
    club: 'Kitchen Garden',
    inDays: 55,
    hour: 16,
    registered: [],
  },
]

/** The colours of background, shape, detail and light for each club, and the paths drawn with the last three. */
export const SCENES: Record<string, [colours: string[], paths: string[]]> = {
  'Robotics Workshop': [['dfe9ee', '37657a', 'e08e45', 'f7f3e8'], [
    'M5 3h6v4H5zM7 8h2v1H7zM7.8 1.5h.4V3h-.4zM4 4h.6v2H4zM11.4 4h.6v2h-.6z', 'M7.5 1h1v.8h-1zM6.5 5.8h3v.4h-3z',
    'M6 4h1.2v1H6zM8.8 4H10v1H8.8z',
  ]],
  'Film Society': [['2b2a3a', 'f4efe4', 'e3b04b', '6d6a8f'], [
    'M3 1h10v5H3z', 'M7 2.2l3 1.3-3 1.3z', 'M0 9c0-3 4-3 4 0 0-3 4-3 4 0 0-3 4-3 4 0 0-3 4-3 4 0z',
  ]],
  'Hill Walkers': [['cfe4ee', '4f7f63', '2f5546', 'f4c95d'], [
    'M0 7l4-4 4 4 3-2 5 3v1H0z', 'M0 9l6-3 4 2 6-2v3z', 'M12 1.2a1.3 1.3 0 0 1 0 2.6 1.3 1.3 0 0 1 0-2.6z',
  ]],
  'Language Café': [['f3e6d8', 'b4573f', '4d7c7a', 'fbf7ef'], [
    'M2 1.5h6v3.5H5L3.5 6.5V5H2z', 'M9 3.5h5V7h-1.5v1.3L11 7H9z',
    'M3 2.6h4v.5H3zM3 3.6h3v.5H3zM10 5h3v.5h-3z',
  ]],
  'Kitchen Garden': [['e9f0d9', '5c8a3a', '7a5537', 'e36f47'], [
    'M7.8 3h.4v4h-.4zM8 5C5 5 5 3 5 2.5 7 2.5 8 3 8 5zM8 4.5c0-2 2-3 3.5-3 0 2-1 3-3.5 3z', 'M0 7h16v2H0z',
    'M3 6.2h1.4L3.7 8.5zM12 6.2h1.4l-.7 2.3z',
  ]],
}

/** Colours of hair, clothes, skin and background for people. */
export const FACES = [
  ['2b2118', '37657a', '8d5a3b', 'dfe9ee'], ['5a3a22', 'b4573f', 'e8b98f', 'f3e6d8'],
  ['1d1d26', '5c8a3a', 'c98b5e', 'e9f0d9'], ['a8702f', '494763', 'f0c9a4', 'e4e1ef'],
  ['8a8a8a', '2f5546', 'b97a50', 'cfe4ee'],
]
