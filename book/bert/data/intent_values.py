"""What the slots of the intents' templates are filled with: ordinary English words of our own choosing.

The package home-assistant-intents knows colours and states, and leaves open what differs from house to
house: rooms, names of devices, and whatever a person may say. No name of a device holds a room, and no
value stands in two of the lists of places, so that "the kitchen lamp" can only be read as a room and a
device. Numbers are digits, as speech recognition writes them, within the ranges that the package allows.
"""

AREAS = (
    *("kitchen", "bedroom", "living room", "bathroom", "office", "hallway", "dining room", "workshop"),
    *("basement", "attic", "nursery", "guest room", "laundry room", "study", "playroom", "porch"),
    *("master bedroom", "garden", "patio", "pantry"),
)
FLOORS = ("upstairs", "downstairs", "first", "second", "third", "ground", "top", "lower", "upper", "main")

# A device by its kind, as the templates ask for it. "before light" are names that the word light follows.
NAMES = {
    "before light": (
        *("bedside", "christmas tree", "reading", "night", "cabinet", "mirror", "closet", "string"),
    ),
    "binary_sensor": ("motion sensor", "mailbox", "skylight", "fridge", "dog door", "safe"),
    "button": ("doorbell", "restart button", "coffee button", "panic button"),
    "climate": ("thermostat", "air conditioner", "heat pump", "radiator", "heater"),
    "cover": ("roller blind", "left curtain", "right curtain", "window shade", "front gate"),
    "fan": ("ceiling fan", "extractor fan", "tower fan", "stand fan"),
    "input_boolean": ("guest mode", "vacation mode", "sleep mode"),
    "input_button": ("reset button", "snooze button"),
    "lawn_mower": ("robot mower", "mowbot", "grass cutter", "lawn robot"),
    "light": (
        *(
            "desk lamp",
            "floor lamp",
            "ceiling light",
            "fairy lights",
            "led strip",
            "chandelier",
            "spotlights",
        ),
    ),
    "lock": ("front door", "back door", "side entrance", "bike shed", "gun safe"),
    "media_player": ("tv", "speaker", "soundbar", "stereo", "record player", "projector", "apple tv"),
    "person": ("anna", "john", "maria", "david", "grandma", "sophie", "dad"),
    "scene": ("movie night", "dinner time", "relax", "sunset", "party", "good morning"),
    "script": ("bedtime routine", "morning routine", "alarm test", "welcome home"),
    "sensor": ("outdoor humidity", "water meter", "rain gauge", "power meter", "washing machine"),
    "switch": ("coffee maker", "kettle", "space heater", "fish tank pump", "smart plug"),
    "todo": ("to do", "grocery", "homework", "packing", "work", "party", "weekend", "chores"),
    "vacuum": ("vacuum", "robot vacuum", "roomba", "dust buster", "hoover"),
    "valve": ("water valve", "heating valve", "sprinkler", "irrigation", "gas valve"),
    "weather": ("london", "new york", "paris", "berlin", "san francisco", "boston"),
}

PERCENTAGES = ("10", "15", "20", "25", "30", "40", "45", "50", "60", "65", "70", "75", "80", "90", "100")
OPEN = {
    "area": AREAS,
    "floor": FLOORS,
    "brightness": PERCENTAGES,
    "fan_speed": PERCENTAGES,
    "position": PERCENTAGES,
    "volume": PERCENTAGES,
    "volume_step_up": ("5", "10", "15", "20", "25", "30"),
    "volume_step_down": ("5", "10", "15", "20", "25", "30"),
    "temperature": ("16", "17", "18", "19", "20", "21", "22", "23", "24", "65", "68", "70", "72", "75"),
    "color_temperature": ("2000", "2200", "2700", "3000", "3500", "4000", "4500", "5000", "6000", "6500"),
    "timer_hours": ("1", "2", "3", "4", "5", "6", "8", "10", "12", "24"),
    "timer_minutes": (
        "1",
        "2",
        "3",
        "4",
        "5",
        "7",
        "8",
        "10",
        "12",
        "15",
        "20",
        "25",
        "30",
        "40",
        "45",
        "50",
    ),
    "timer_seconds": ("5", "10", "15", "20", "25", "30", "35", "40", "45", "50", "60", "75", "90"),
    "timer_name": (
        *("pizza", "pasta", "laundry", "egg", "workout", "nap", "tea", "chicken", "oven", "parking meter"),
    ),
    "timer_command": (
        *("turn off the lights", "open the garage door", "lock the front door", "start the vacuum"),
        *("turn on the kettle", "close the blinds", "pause the music", "turn up the heating"),
        *("water the garden", "dim the lamps"),
    ),
    "todo_list_item": (
        *("call the plumber", "pay the rent", "walk the dog", "water the plants", "book flights"),
        *("clean the gutters", "buy stamps", "feed the cat", "return library books", "renew passport"),
    ),
    "shopping_list_item": (
        *("milk", "eggs", "bread", "apples", "olive oil", "toilet paper", "orange juice", "coffee beans"),
        *("butter", "rice", "dish soap", "tomatoes", "cheese", "green tea"),
    ),
    "search_query": (
        *("bohemian rhapsody", "the beatles", "daft punk", "abbey road", "classical piano", "miles davis"),
        *("star wars", "smooth jazz", "morning news", "billie holiday", "thriller", "nina simone"),
    ),
    "zone": ("home", "work", "school", "gym", "park", "airport", "supermarket", "library", "beach"),
}
